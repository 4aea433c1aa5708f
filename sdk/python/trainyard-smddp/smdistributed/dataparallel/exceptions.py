"""Errors whose names launchers search for in the output."""


class SMDDPError(RuntimeError):
    """The base of all errors of this library."""


class SMDDPConfigurationError(SMDDPError):
    """The configuration at the start of the library is invalid."""
