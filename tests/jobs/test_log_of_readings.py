"""A log of a million temperatures, read from text into lists, averaged by the time of day."""

import numpy as np
import pytest

from sklearn_attention import attend
from sklearn_attention.attention import attention_sums


@pytest.mark.slow
def test_lists_are_averaged_at_once_or_month_by_month():
    """Every minute of 730 days reads 15 degrees, and 2 more in the hours after noon.

    A window of an hour before and after 6 and 18 o'clock holds minutes of one kind alone, so
    the means are 15 and 17; at noon it holds 60 minutes of 15, and noon with 60 of 17.
    """
    minutes = np.arange(730 * 1440) % 1440
    log, degrees = minutes[:, None].tolist(), np.where(minutes < 720, 15.0, 17.0).tolist()
    hours, window = [[360], [720], [1080]], {"kernel": "boxcar", "bandwidth": 60.5}
    expected = [15, 15 + 2 * 61 / 121, 17]
    np.testing.assert_allclose(attend(hours, log, degrees, **window)[0], expected)
    months = [slice(start, start + 43_800) for start in range(0, len(log), 43_800)]
    total = sum(attention_sums(hours, log[rows], degrees[rows], **window) for rows in months)
    np.testing.assert_allclose(total.average()[0][:, 0], expected)
