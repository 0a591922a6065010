"""The course of a training."""

from numpy.testing import assert_allclose

from sklearn_attention.inspection import TrainingDisplay


def test_a_training_is_drawn_epoch_by_epoch(encoder):
    display = TrainingDisplay.from_estimator(encoder)
    history = encoder.training_history_
    training, validation, kept, _ = display.ax_.lines
    assert_allclose(training.get_ydata(), history["loss"])
    assert_allclose(validation.get_ydata(), history["validation_loss"])
    assert kept.get_xdata()[0] == history["best_epoch"] + 1
