"""All messages of the package in one table: ``python tests/messages.py [FOLDER ...]``.

Errors, warnings and lines of progress are collected from the source, with expressions in braces
where values stand. Messages are written for someone who does not know the package, which is
judged best by reading all of them in one go.
"""

import argparse
import ast
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "sklearn_attention"
# Functions whose first arguments are messages.
_WARNINGS = {"warn_user", "warn"}


def text_of(node, names):
    """A message as text: literals as they are, values in braces; None for no text."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part, names) or _braces(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        known = names.get(node.value.id) if isinstance(node.value, ast.Name) else None
        inner = None if known is None else text_of(known, {})
        return f"{{{ast.unparse(node.value)}}}" if inner is None else inner
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = text_of(node.left, names), text_of(node.right, names)
        return None if parts == (None, None) else "".join(part or "{…}" for part in parts)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        inner = text_of(node.left, names)
        return None if inner is None else f"[{inner}]"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return text_of(node.func.value, names)  # of str.format and str.join
    if isinstance(node, ast.Name) and node.id in names:
        return text_of(names[node.id], {})
    return None


def _braces(node):
    return f"{{{ast.unparse(node)}}}"


def names_in(nodes):
    """What names are bound to by plain assignments; the first counts."""
    return {
        target.id: node.value
        for node in reversed(list(nodes))
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def messages_of(path):
    """(line, kind, message) of the errors and warnings of a module."""
    tree = ast.parse(path.read_text("utf-8"))
    constants, methods = names_in(tree.body), []
    for node in tree.body:
        methods += node.body if isinstance(node, ast.ClassDef) else [node]
    for method in methods:
        yield from messages_in(method, constants | names_in(ast.walk(method)))


def messages_in(tree, names):
    """(line, kind, message) below a node; names are bound to nodes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            kind, given = ast.unparse(node.exc.func), node.exc.args
        elif isinstance(node, ast.Call):
            kind = ast.unparse(node.func).rpartition(".")[2]
            if kind not in _WARNINGS and kind != "print":
                continue
            kind, given = "warning" if kind in _WARNINGS else "line", node.args
        else:
            continue
        for argument in given:
            message = text_of(argument, names)
            if message and len(message.split()) > 2:
                yield node.lineno, kind, " ".join(message.split())


def table(folders=()):
    """Rows (where, kind, message) of the package, or of some of its folders."""
    return [
        (f"{path.relative_to(PACKAGE)}:{line}", kind, message)
        for path in sorted(PACKAGE.rglob("*.py"))
        if not folders or path.relative_to(PACKAGE).parts[0] in folders
        for line, kind, message in sorted(messages_of(path))
    ]


def main():
    """Print the table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="*", help="of the package; all by default")
    print("| where | kind | message |\n|---|---|---|")
    for row in table(parser.parse_args().folders):
        print("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")


if __name__ == "__main__":
    main()
