"""Serialises objects: with cloudpickle if it is installed, which supports functions of the
script."""

try:
    import cloudpickle as pickle

    takes_functions = True
except ImportError:
    import pickle

    takes_functions = False

dumps, loads, load = pickle.dumps, pickle.loads, pickle.load
