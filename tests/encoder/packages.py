"""Which packages that carry an encoder are installed: tests of these encoders need them."""

from importlib.metadata import PackageNotFoundError, distribution

from attree.encoder.converted import CARRIED


def installed(name: str) -> bool:
    """Tell whether all packages that carry an encoder are installed."""
    try:
        return all(distribution(package) for package in CARRIED[name].parts)
    except PackageNotFoundError:
        return False
