"""As horovod.tensorflow.keras.callbacks."""

# All of its names: this module is another one for it.
from horovod.tensorflow.keras.callbacks import *  # noqa: F403
