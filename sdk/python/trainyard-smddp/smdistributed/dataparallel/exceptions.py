"""The errors that launchers look for by name."""


class SMDDPError(RuntimeError):
    """Anything of this library."""


class SMDDPConfigurationError(SMDDPError):
    """It was started in a way that cannot be right."""
