"""`import horovod.keras as hvd`: Keras 3 over TensorFlow, as horovod.tensorflow.keras."""

from horovod.tensorflow.keras import *  # noqa: F401,F403
from horovod.tensorflow.keras import callbacks, elastic  # noqa: F401
