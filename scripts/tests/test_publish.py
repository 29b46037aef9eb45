"""The metadata of a published directory are an RO-Crate, as its validator and its library read them."""

import importlib.util
import json
import os
import subprocess

import pytest

pytestmark = pytest.mark.skipif("GRUNDY_BIN" not in os.environ, reason="GRUNDY_BIN is not set")

# The address at which the metadata find the meaning of their keys. The tests answer from the copy in the package rocrate.
CONTEXT = "https://w3id.org/ro/crate/1.1/context"


@pytest.fixture
def published(tmp_path):
    program = os.path.abspath(os.environ["GRUNDY_BIN"])
    for line in [
        "-q run kayles --to 30000 --dir run",
        "-q publish run -o there --author Ada --author Grace",
    ]:
        subprocess.run([program, *line.split()], cwd=tmp_path, check=True, capture_output=True)
    return tmp_path


def test_library_reads_the_crate(published):
    rocrate = pytest.importorskip("rocrate.rocrate")
    crate = rocrate.ROCrate(published / "there")
    manifest = json.loads((published / "there" / "manifest.json").read_text())
    assert manifest["digest"] in crate.root_dataset["description"]
    assert [author["name"] for author in crate.root_dataset["author"]] == ["Ada", "Grace"]
    names = {part.id for part in crate.root_dataset["hasPart"]}
    assert names == {file["name"] for file in manifest["files"]} | {"manifest.json"}


def test_validator_accepts_the_crate_and_refuses_a_damaged_one(published, monkeypatch):
    services = pytest.importorskip("rocrate_validator.services")
    models = pytest.importorskip("rocrate_validator.models")
    answer_from_the_package(monkeypatch)
    settings = services.ValidationSettings(
        rocrate_uri=str(published / "there"),
        profile_identifier="ro-crate-1.1",
        requirement_severity=models.Severity.REQUIRED,
    )
    result = services.validate(settings)
    assert result.passed(), [issue.message for issue in result.get_issues()]
    metadata = published / "there" / "ro-crate-metadata.json"
    metadata.write_text(metadata.read_text().replace('"datePublished"', '"dateOfPublication"'))
    assert not services.validate(settings).passed()


def answer_from_the_package(monkeypatch):
    """Answers the two libraries that the validator uses to read the context, without a network."""
    package = importlib.util.find_spec("rocrate")
    if package is None:
        pytest.skip("the package rocrate is not installed")
    with open(os.path.join(os.path.dirname(package.origin), "data", "ro-crate.jsonld"), "rb") as file:
        context = file.read()
    import email.message
    import io

    import rdflib._networking
    import rdflib.parser
    import requests

    def answered(session, method, url, **options):
        if url != CONTEXT:
            raise requests.ConnectionError(url)
        answer = requests.Response()
        answer.status_code, answer._content, answer.url = 200, context, url
        answer.headers["Content-Type"] = "application/ld+json"
        return answer

    def opened(request):
        url = request if isinstance(request, str) else request.get_full_url()
        if url != CONTEXT:
            raise OSError(url)
        stream = io.BytesIO(context)
        stream.headers = email.message.Message()
        stream.headers["Content-Type"] = "application/ld+json"
        stream.info = lambda: stream.headers
        stream.geturl = lambda: url
        stream.url = url
        return stream

    monkeypatch.setattr(requests.Session, "request", answered)
    monkeypatch.setattr(rdflib._networking, "_urlopen", opened)
    monkeypatch.setattr(rdflib.parser, "_urlopen", opened)
