"""A site with the apps that come with hanji, each as it is but for who may use it."""
import re
import shutil

import harness

BUNDLED = harness.REPOSITORY / "handlers" / "bundled"


def lay_out(folder, *names, access="public"):
    """Copies these apps into `folder`; `access` is what read and write are set to, None: as they are."""
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    for name in names:
        shutil.copytree(BUNDLED / name, folder / name)
        ini = folder / name / "app.ini"
        if access is not None:
            ini.write_text(re.sub(r"^(read|write) = .*$", r"\1 = %s" % access, ini.read_text(), flags=re.M))
    return folder


def start_site(base, certificate, *names, access="public", mount="", **settings):
    site = harness.Site(base, certificate, mount, apps=lay_out(base / "apps", *names, access=access), **settings)
    return site.start()
