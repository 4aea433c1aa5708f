raise ImportError(
    "horovod.mxnet is not supported: MXNet is retired (its last release was in 2022) and no longer"
    " runs with current Python and NumPy. horovod.torch, horovod.tensorflow and horovod.keras are."
)
