"""Makes rows of attacks whose rejections the server's log records."""

from tests.hostile.table import SERVER_LOG, Attack
from tests.hostile.world import Attempt


def row(name: str, tried: str, refused: str, attempt: Attempt) -> Attack:
    return Attack(name, tried, "^" + refused, SERVER_LOG, attempt)
