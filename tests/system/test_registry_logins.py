"""Tests a registry that requires a login (Debian's docker-registry with htpasswd): jobs fetch
images with the logins that their principals may use, and jobs without a login do not get images
that it fetched. Also tests the machine's signature policy, and links in directories of OCI
layouts."""

import os
import pathlib
from collections.abc import Callable, Iterator

import pytest

from tests import jobs, oci
from tests.trainyard_server import Server

USERS = {"team-a": "password-of-a", "team-b": "password-of-b"}
KEYS = {name: f"AKIA{name.upper()}000000000000" for name in ("ann", "bob", "eve")}
ROLE = "arn:aws:iam::123456789012:role/"
SHOWN = b"canary of team a\n"


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[oci.Registry]:
    one = oci.Registry(tmp_path_factory.mktemp("registry"), users=USERS)
    yield one
    one.stop()


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> oci.Layout:
    return oci.Layout(tmp_path_factory.mktemp("oci") / "layout")


@pytest.fixture(scope="module")
def image(registry: oci.Registry, layout: oci.Layout) -> tuple[str, str]:
    """Returns an image of team a: its name with a tag, and with its digest."""
    digest = layout.image("v1", [oci.base(), [oci.file("shown", SHOWN)]])
    name = registry.push(layout, "v1", "team-a/train", login=("team-a", USERS["team-a"]))
    return name, name.rsplit(":", 1)[0] + "@" + digest


@pytest.fixture(scope="module")
def server(
    start: Callable[..., Server], registry: oci.Registry, tmp_path_factory: pytest.TempPathFactory
) -> Server:
    secret = tmp_path_factory.mktemp("secret") / "password"
    secret.write_text(USERS["team-b"] + "\n")
    config = (
        "account_id = '123456789012'\n"
        + "".join(
            f"[[access_key]]\nid = '{KEYS[name]}'\nsecret = '{name}-key'\nuser = '{name}'\n"
            for name in KEYS
        )
        + "".join(
            f"[[user]]\nname = '{name}'\npolicies = ['AdministratorAccess']\n"
            for name in ("bob", "eve")
        )
    )
    config += f"""
[[registry]]
host = "{registry.host}"
username = "team-a"
password = "{USERS["team-a"]}"
users = ["ann"]
roles = ["TrainA"]
[[registry]]
host = "{registry.host}"
username = "team-b"
password_file = "{secret}"
users = ["bob"]
"""
    return start(config, bucket="yard")


def run(
    server: Server, user: str, name: str, image: str, role: str = "trainer"
) -> tuple[str, str, list[str]]:
    request = jobs.request(name, "cat /shown", image=image, RoleArn=ROLE + role)
    sagemaker = server.boto(
        "sagemaker", aws_access_key_id=KEYS[user], aws_secret_access_key=f"{user}-key"
    )
    sagemaker.create_training_job(**request)
    done = jobs.wait_until(sagemaker, name)
    return (
        done["TrainingJobStatus"],
        done.get("FailureReason", ""),
        jobs.log_lines(server.boto("logs"), name),
    )


def secrets_in(server: Server) -> list[str]:
    """Returns the logs of the server and of its agents, and the arguments of processes, that
    contain a password."""
    texts = {"server": server.log_text()}
    for path, _, names in os.walk(os.path.join(server.data, "attempts")):
        for name in names:
            if name.endswith(".log"):
                with open(os.path.join(path, name), encoding="utf-8", errors="replace") as file:
                    texts[name] = file.read()
    return [
        name for name, text in texts.items() if any(password in text for password in USERS.values())
    ]


def test_a_job_has_the_login_of_its_principal(
    server: Server, registry: oci.Registry, image: tuple[str, str]
) -> None:
    assert run(server, "ann", "anns", image[0]) == ("Completed", "", [SHOWN.decode().strip()])
    assert run(server, "eve", "of-the-role", image[0], "TrainA")[0] == "Completed"
    # The registry permits both logins to read: the test checks which login a job uses.
    requests = [line for line in registry.log().splitlines() if "auth.user.name=team-a" in line]
    assert requests and not any(
        "auth.user.name=team-b" in line for line in registry.log().splitlines()
    )
    assert secrets_in(server) == []


def test_local_images_serve_only_users_that_may_fetch_them(
    server: Server, registry: oci.Registry, image: tuple[str, str]
) -> None:
    """Uses the tag and the digest, while the registry is available and while it is not."""
    assert run(server, "ann", "first", image[0])[0] == "Completed"
    for number, name in enumerate(image):
        status, reason, lines = run(server, "eve", f"eves-{number}", name)
        assert status == "Failed" and "no login of the registry" in reason and "'eve'" in reason, (
            reason
        )
        assert SHOWN.decode().strip() not in lines
    registry.stop()
    try:
        assert run(server, "ann", "away", image[0])[0] == "Completed"
        for number, name in enumerate(image):
            assert run(server, "bob", f"bobs-{number}", name)[0] == "Failed", (
                "his login has fetched nothing yet"
            )
    finally:
        registry.start()
    assert run(server, "bob", "bobs", image[0])[0] == "Completed"
    assert secrets_in(server) == []


def test_a_layer_of_another_login_is_not_used_for_an_image(
    server: Server, image: tuple[str, str], layout: oci.Layout, tmp_path: pathlib.Path
) -> None:
    """An image names the layers of another image by their digests, without having them."""
    assert run(server, "ann", "has-it", image[0])[0] == "Completed"
    thief = oci.Layout(tmp_path / "thief")
    thief.manifests = layout.manifests
    for name in ("index.json",):
        with open(os.path.join(layout.path, name), "rb") as file:
            thief.write(name, file.read())
    import json

    manifest = layout.manifests[0]["digest"].split(":")[1]
    with open(os.path.join(layout.path, "blobs", "sha256", manifest), "rb") as file:
        text = file.read()
    thief.write(f"blobs/sha256/{manifest}", text)
    config = json.loads(text)["config"]["digest"].split(":")[1]
    with open(os.path.join(layout.path, "blobs", "sha256", config), "rb") as file:
        thief.write(f"blobs/sha256/{config}", file.read())
    status, reason, lines = run(server, "eve", "stolen-layers", f"oci:{thief.path}:v1")
    assert status == "Failed" and SHOWN.decode().strip() not in lines, (reason, lines)


def test_the_signature_policy_of_the_machine_is_kept(
    start: Callable[..., Server],
    registry: oci.Registry,
    layout: oci.Layout,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    policy = tmp_path / ".config" / "containers" / "policy.json"
    policy.parent.mkdir(parents=True)
    policy.write_text('{"default": [{"type": "reject"}]}')
    layout.image("signed", [oci.base(), [oci.file("shown", b"never")]])
    monkeypatch.setenv("HOME", str(tmp_path))
    server = start()
    server.boto("s3").create_bucket(Bucket="yard")
    server.boto("sagemaker").create_training_job(
        **jobs.request("rejected", "cat /shown", image=f"oci:{layout.path}:signed")
    )
    done = jobs.wait_until(server.boto("sagemaker"), "rejected")
    assert (
        done["TrainingJobStatus"] == "Failed" and "rejected by policy" in done["FailureReason"]
    ), done["FailureReason"]


def test_no_link_leads_out_of_a_directory_of_layouts(
    start: Callable[..., Server], tmp_path: pathlib.Path
) -> None:
    allowed, hidden = tmp_path / "allowed", oci.Layout(tmp_path / "hidden")
    allowed.mkdir()
    hidden.image("v1", [oci.base(), [oci.file("shown", SHOWN)]])
    ours = oci.Layout(allowed / "ours")
    ours.image("v1", [oci.base(), [oci.file("shown", b"ours\n")]])
    os.symlink(hidden.path, allowed / "link")
    (allowed / "deep").mkdir()
    os.symlink("..", allowed / "deep" / "up")
    linked = allowed / "files"
    os.makedirs(linked)
    for name in os.listdir(hidden.path):
        os.symlink(os.path.join(hidden.path, name), linked / name)
    server = start(f"[image_policy]\noci_directories = ['{allowed}']\n")
    server.boto("s3").create_bucket(Bucket="yard")
    for name, path, status in (
        ("ours", "ours", "Completed"),
        ("by-link", "link", "Failed"),
        ("by-upward-link", "deep/up/ours", "Failed"),
        ("by-linked-files", "files", "Failed"),
    ):
        server.boto("sagemaker").create_training_job(
            **jobs.request(name, "cat /shown", image=f"oci:{allowed}/{path}:v1")
        )
        done = jobs.wait_until(server.boto("sagemaker"), name)
        lines = jobs.log_lines(server.boto("logs"), name)
        assert done["TrainingJobStatus"] == status, (name, done.get("FailureReason"), lines)
        assert SHOWN.decode().strip() not in lines
        if status == "Failed":
            assert f"oci:{allowed}/{path}" in done["FailureReason"], done["FailureReason"]


def test_a_login_is_written_as_it_must_be(start: Callable[..., Server]) -> None:
    for lines, output in (
        ("host = 'a/b'\nusername = 'u'\npassword = 'p'", "host"),
        ("host = 'a'\npassword = 'p'", "username"),
        ("host = 'a'\nusername = 'u'", "password"),
    ):
        with pytest.raises(AssertionError, match=output):
            start(f"[[registry]]\n{lines}\n")
