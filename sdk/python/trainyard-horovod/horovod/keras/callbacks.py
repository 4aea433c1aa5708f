"""An alias of horovod.tensorflow.keras.callbacks."""

# The names of horovod.tensorflow.keras.callbacks.
from horovod.tensorflow.keras.callbacks import *  # noqa: F403
