"""The errors that launchers look for by name."""


class SMDDPError(RuntimeError):
    """The base of all errors of this library."""


class SMDDPConfigurationError(SMDDPError):
    """The configuration at the start of the library is invalid."""
