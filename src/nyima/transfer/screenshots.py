"""Texts, text files and screenshots as things to remember. What a screenshot says is quoted:
its origin is a document, so that it never changes what the user said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nyima.domain.conversation import Origin
from nyima.errors import ConfigError, InputError
from nyima.memory import Said
from nyima.models.silent import no_telemetry

__all__ = ["read_image", "said_in"]

_MOST_BYTES = 20_000_000
_SURE = 0.5


def said_in(text: str | None, file: Path | None, image: Path | None) -> list[Said]:
    """What is to be remembered, a paragraph of a file each. Raises InputError."""
    if sum(part is not None for part in (text, file, image)) != 1:
        raise InputError("give one of: a text, --file or --image")
    if text is not None:
        return [Said(text)]
    if file is not None:
        return [Said(part, origin=Origin.IMPORT) for part in _paragraphs(file)]
    assert image is not None
    lines = read_image(image)
    if not lines:
        raise InputError(f"{image} shows no text that can be read: try a sharper picture")
    return [Said("\n".join(lines), origin=Origin.DOCUMENT)]


def _paragraphs(file: Path) -> list[str]:
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise InputError(f"{file} is larger than {_MOST_BYTES // 1_000_000} MB: split it")
        text = file.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is no text in UTF-8: {error.reason}: save it as text first") from error
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}: check the path") from error
    parts = [" ".join(p.split()) for p in text.split("\n\n")]
    found = [p for p in parts if p]
    if not found:
        raise InputError(f"{file} is empty: there is nothing to remember")
    return found


def read_image(path: Path) -> list[str]:
    """The lines that OCR reads in a picture, from top to bottom. Raises InputError for what
    is no picture, ConfigError when the package is missing."""
    no_telemetry()
    try:
        from rapidocr import RapidOCR
        from rapidocr.utils.load_image import LoadImageError
    except ImportError as error:
        raise ConfigError("screenshots need the rapidocr package: pip install 'nyima[ocr]'") from error
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}: check the path") from error
    if len(data) > _MOST_BYTES or not data.startswith(
        (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"BM", b"RIFF", b"II*", b"MM\x00*")
    ):
        raise InputError(f"{path} is no picture that can be read: give a PNG, JPEG, GIF, BMP, WebP or TIFF file")
    try:
        found: Any = RapidOCR(params={"Global.log_level": "error"})(data)
    except (LoadImageError, OSError, ValueError, RuntimeError, TypeError) as error:
        raise InputError(f"{path} cannot be read as a picture: {error}: save it again as PNG") from error
    texts, scores = found.txts or (), found.scores or ()
    return [t for t, score in zip(texts, scores, strict=True) if score >= _SURE and t.strip()]
