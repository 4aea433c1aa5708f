"""Scripts written for Horovod, over Trainyard's collectives. The version is that of the interface they find here."""

__version__ = "0.28.1+trainyard.0.1.0"
