"""The page by HTTP: who may come in, how much they may bring, and what they are told."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from attree.annotate import folder, server
from attree.annotate.session import Session
from tests.annotate.conftest import HOME, PORT, Begin, Page
from tests.refusals import refused

ACCEPT = {"action": "accept", "version": 0}
PATHS = ("/", "/page.js", "/page.tree.js", "/page.css", "/state")


@pytest.mark.parametrize("path", [*PATHS, "/open", "/open?token=", "/open?token=x", "/nothing"])
def test_without_the_token_nothing_is_shown(session: Session, path: str) -> None:
    answer = Page(session).http.get(path)
    assert answer.status_code == 403
    assert "link that attree annotate printed" in answer.text


def test_the_token_works_once(session: Session) -> None:
    page = Page(session).open()
    assert {page.http.get(path).status_code for path in PATHS} == {200}
    again = page.http.get(page.guard.link)
    assert again.status_code == 403
    assert f"the page is at {HOME}/" in again.text
    page.http.cookies.clear()
    assert page.http.get("/").status_code == 403
    assert page.http.get(page.guard.link).status_code == 403


def test_the_cookie_is_for_this_page_only(session: Session) -> None:
    page = Page(session)
    cookie = page.http.get(page.guard.link).headers["set-cookie"]
    assert cookie.startswith(f"attree-{PORT}=")
    assert {"HttpOnly", "SameSite=strict"} <= set(cookie.split("; "))
    assert page.guard.token not in cookie


@pytest.mark.parametrize("host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1:1", ""])
def test_another_host_is_refused(page: Page, host: str) -> None:
    for path in PATHS:
        assert page.http.get(path, headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "x"])
def test_another_origin_is_refused(page: Page, origin: str) -> None:
    assert page.http.get("/state", headers={"Origin": origin}).status_code == 403
    answer = page.http.post("/act", json=ACCEPT, headers={"Origin": origin})
    assert answer.status_code == 403
    assert page.state()["saved"] == 0


def test_an_action_without_an_origin_is_refused(page: Page) -> None:
    answer = page.http.post("/act", json=ACCEPT)
    assert answer.status_code == 403


@pytest.mark.parametrize("size", [65 * 1024, 10 * 2**20])
def test_a_large_request_is_refused(page: Page, size: int) -> None:
    headers = {"Origin": HOME, "Content-Type": "application/json"}
    answer = page.http.post("/act", content=b"x" * size, headers=headers)
    assert answer.status_code == 413
    parts = (b"x" * 1024 for _ in range(size // 1024))  # whose length is not told beforehand
    assert page.http.post("/act", content=parts, headers=headers).status_code == 413


def test_a_form_of_another_page_is_no_action(page: Page) -> None:
    headers = {"Origin": HOME, "Content-Type": "text/plain"}
    answer = page.http.post("/act", content='{"action":"accept","version":0}', headers=headers)
    assert answer.status_code == 415


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"action": "accept"},
        {"action": "join", "version": 0, "start": -1, "end": 3},
        {"action": "join", "version": 0, "start": "0", "end": 3},
        {"action": "join", "version": 0, "more": 1},
        {"action": "label", "version": 0, "start": 0, "end": 2, "label": "N" * 2000},
        [],
        "[" * 5000,
    ],
)
def test_what_is_no_action_is_told_and_changes_nothing(page: Page, body: Any) -> None:
    before = page.state()
    content: dict[str, Any] = {"content": body} if isinstance(body, str) else {"json": body}
    headers = {"Origin": HOME, "Content-Type": "application/json"}
    answer = page.http.post("/act", **content, headers=headers)
    assert answer.status_code == 400
    assert "\n" not in answer.json()["error"]
    assert page.state() == before


def test_every_answer_has_the_policy(page: Page) -> None:
    for path in (*PATHS, "/nothing"):
        headers = page.http.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"


def test_the_page_asks_nothing_of_others() -> None:
    here = Path(server.__file__).parent
    for path in here.glob("page.*"):
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "http" not in text and "//cdn" not in text, path.name
    html = (here / "page.html").read_text(encoding="utf-8")
    assert "style=" not in html and "onclick" not in html  # the policy forbids them
    for name in ("page.js", "page.tree.js"):
        script = (here / name).read_text(encoding="utf-8")
        assert "innerHTML" not in script and "insertAdjacentHTML" not in script, name


def test_all_actions_of_the_page(page: Page) -> None:
    assert page.act("label", start=0, end=3, label="NP").status_code == 200
    assert page.act("join", start=3, end=7).status_code == 200
    assert page.act("move", start=3, end=7, to=[4, 7]).status_code == 200
    assert (4, 7) in page.spans()
    assert page.act("flat", start=4, end=7).status_code == 200
    assert page.act("break", start=0, end=3).status_code == 200
    assert (0, 3) not in page.spans()
    assert page.act("undo").status_code == 200
    assert (0, 3) in page.spans()
    assert page.act("dissolve", start=0, end=3).status_code == 200
    assert page.state()["sentence"]["edits"] == 5
    assert page.act("accept").status_code == 200
    assert page.act("skip").status_code == 200
    assert page.state()["saved"] == 1
    assert page.state()["curve"] == [5]


def test_what_cannot_be_done_is_one_line(page: Page) -> None:
    for action, more in (
        ("join", {"start": 0, "end": 90}),
        ("break", {"start": 0, "end": 8}),
        ("label", {"start": 0, "end": 2, "label": "a b"}),
        ("undo", {}),
        ("burn", {}),
    ):
        answer = page.act(action, **more)
        assert answer.status_code == 422, action
        assert answer.json()["error"].count("\n") == 0


def test_a_window_that_is_behind_is_told(page: Page) -> None:
    behind = page.state()["version"]
    page.act("join", start=0, end=2)
    late = {"action": "accept", "version": behind}
    answer = page.http.post("/act", json=late, headers={"Origin": HOME})
    assert answer.status_code == 409
    assert answer.json()["state"]["version"] == behind + 1
    assert page.state()["saved"] == 0


@pytest.mark.parametrize("action", ["accept", "skip", "label"])
def test_of_simultaneous_actions_on_one_state_one_is_done(page: Page, action: str) -> None:
    """Nothing is saved that nobody saw: the others are behind, whatever thread comes first."""
    for _ in range(3):
        before = page.state()
        body = msgspec.json.encode(
            {"action": action, "version": before["version"], "end": 2, "label": "NP"}
        )
        together = threading.Barrier(8)

        def send(body: bytes = body, together: threading.Barrier = together) -> int:
            together.wait()
            return server._answer(page.session, body).status_code

        with ThreadPoolExecutor(8) as pool:
            statuses = [one.result() for one in [pool.submit(send) for _ in range(8)]]
        assert sorted(statuses) == [200, *[409] * 7]
        assert page.state()["version"] == before["version"] + 1
        assert page.state()["saved"] == before["saved"] + (action == "accept")


def test_a_full_disk_is_told_and_nothing_is_lost(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    page.act("label", start=0, end=3, label="NP")
    before = page.state()

    def full(*_: Any) -> Any:
        raise OSError(28, "No space left on device", "train.ptb")

    with monkeypatch.context() as patch:
        patch.setattr(folder, "whole_file", full)
        answer = page.act("accept")
    assert answer.status_code == 507
    assert "the disk is full" in answer.json()["error"]
    assert page.state() == before
    assert page.act("accept").status_code == 200
    assert page.state()["saved"] == 1


def test_words_are_text(session_of: Begin, text: Path) -> None:
    text.write_text("<script>alert(1)</script> & \u202e\u05d0 \U0001f600 ok\n", encoding="utf-8")
    with session_of() as session:
        page = Page(session).open()
        assert page.state()["sentence"]["words"][0] == "<script>alert(1)</script>"
        assert page.http.get("/state").headers["content-type"] == "application/json"


def test_a_taken_port_is_one_line() -> None:

    with server.listen(0) as taken:
        taken.listen()
        with refused("port-taken"):
            server.listen(taken.getsockname()[1])
