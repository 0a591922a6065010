"""Pictures of what displays draw: each is that of the example in the display's docstring."""

import doctest

from sklearn_attention import inspection


def draw_displays(folder):
    """Run the example of each display, and draw its picture into ``display_<name>.svg``.

    A picture that is there is not drawn again, as the gallery's are not.
    """
    import matplotlib.pyplot as plt

    for name in filter(lambda name: name.endswith("Display"), inspection.__all__):
        path = folder / f"display_{name}.svg"
        if not path.exists():
            variables = {}
            for example in doctest.DocTestParser().get_examples(
                getattr(inspection, name).__doc__
            ):
                exec(example.source, variables)
            variables["display"].figure_.savefig(path, transparent=True)
            plt.close("all")
