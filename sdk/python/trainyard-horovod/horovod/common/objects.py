"""Objects as bytes: with cloudpickle, which also takes functions of the script,
where it is installed."""

try:
    import cloudpickle as pickle

    takes_functions = True
except ImportError:
    import pickle

    takes_functions = False

dumps, loads, load = pickle.dumps, pickle.loads, pickle.load
