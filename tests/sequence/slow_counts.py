"""Models of the next token by counts, slowly and obviously."""

import collections

from sklearn_attention.text._special import END, START


def kneser_ney(texts, context, token, n_tokens, longest):
    """Probability of a token after others, interpolated Kneser-Ney of texts of ids."""
    # For every gram its occurrences: the text, the place, and the token before it if any.
    occurrences = collections.defaultdict(list)
    for number, text in enumerate(texts):
        whole = (START, *text, END)
        for last in range(1, len(whole)):
            for k in range(min(last, longest) + 1):
                first = last - k
                older = ("token", whole[first - 1]) if first else ("beginning of", number)
                occurrences[whole[first : last + 1]].append(older)

    def count(gram):
        found = occurrences.get(gram, [])
        return len(found) if len(gram) == longest + 1 else len(set(found))

    def proba(context):
        shorter = proba(context[1:]) if context else 1 / (n_tokens - 2)
        following = [gram for gram in occurrences if gram[:-1] == context]
        if not following:
            return shorter
        counts = [count(gram) for gram in occurrences if len(gram) == len(context) + 1]
        once, twice = counts.count(1), counts.count(2)
        discount = (once + 0.5) / (once + 2 * twice + 1)
        kept = max(count((*context, token)) - discount, 0)
        return (kept + discount * len(following) * shorter) / sum(map(count, following))

    if token in (0, START):
        return 0.0
    return proba(tuple(context[-longest:]))
