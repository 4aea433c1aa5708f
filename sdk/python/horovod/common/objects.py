"""Objects as bytes: with cloudpickle, which also takes functions of the script, where it is installed."""

try:
    import cloudpickle as pickle
except ImportError:
    import pickle

dumps, loads = pickle.dumps, pickle.loads
