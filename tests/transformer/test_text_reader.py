"""Texts and ids, as encoders read them."""

import pandas as pd
import pytest
from tiny_encoders import regress


class TestEmptyTexts:
    def test_are_one_unknown_token(self):
        texts = pd.Series(["to be", " "], index=[5, 6])
        model = regress(texts)
        assert model.predict(["unheard"]) == model.predict([""])

    @pytest.mark.parametrize("X", [["to be", "", "or not to be"], [[5, 6], [], [6]]])
    def test_may_be_in_training(self, X):
        model = regress(X)
        unknown = ["unheard"] if isinstance(X[0], str) else [[99]]
        assert model.predict(X)[1] == pytest.approx(model.predict(unknown)[0], rel=1e-5)

    @pytest.mark.parametrize("X", [["", ""], [[], []]])
    def test_alone_are_refused(self, X):
        with pytest.raises(ValueError, match="X has only empty texts"):
            regress(X, tokens="text")
