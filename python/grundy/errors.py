"""The errors of reading a run."""


class RunError(Exception):
    """The run cannot be read: no run in the directory, another format, or a rollback meanwhile."""


class Damage(RunError):
    """A file contradicts the journal or itself."""


class Discarded(RunError):
    """The run has discarded these values.

    This is no IndexError, because an IndexError would silently end a `for` loop.
    """
