"""As horovod.tensorflow.keras.callbacks."""

from horovod.tensorflow.keras.callbacks import *  # noqa: F401,F403
