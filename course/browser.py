"""The system's Chromium, for the README's picture and for the tests of the site. Nothing is downloaded."""

import os
import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome")


def launch(playwright):
    """Start it under Playwright; FileNotFoundError, which says what to do, where there is none."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if not found:
        raise FileNotFoundError(
            "no Chromium: apt-get install chromium, or say where one is with CHROMIUM=..."
        )
    arguments = ["--disable-background-networking", "--disable-component-update", "--no-first-run"]
    if os.name == "posix" and os.geteuid() == 0:
        arguments.append("--no-sandbox")  # Chromium's sandbox refuses to run as root
    return playwright.chromium.launch(executable_path=found, args=arguments)
