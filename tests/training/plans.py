"""Trainings described by keywords, those of `Training` and of `train` alike."""

from sklearn_attention import Training
from sklearn_attention.training._training import resolve_plan


def split_options(options):
    """Return a Training of the options that are its parameters, and the other options."""
    names = Training().get_params()
    training = Training(**{name: options[name] for name in options if name in names})
    return training, {name: options[name] for name in options if name not in names}


def plan_for(n_samples, *, validates=False, **options):
    """Resolve the TrainingPlan of a training on `n_samples` rows."""
    training, others = split_options(options)
    pace = {"learning_rate": 1e-3, "batch_size": "auto", "max_epochs": "auto"} | others
    return resolve_plan(training, n_samples, validates=validates, **pace)
