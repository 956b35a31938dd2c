"""Validates each manifest by the schema of the newest known version of Kubernetes; unknown keys are errors."""

import sys

import kubernetes_validate
import yaml

for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        for manifest in yaml.safe_load_all(file):
            kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)
            print(manifest["kind"])
            # What no schema knows is found.
            manifest["spec"]["narrows"] = True
            try:
                kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)
            except kubernetes_validate.ValidationError:
                continue
            sys.exit("an unknown key was accepted")
