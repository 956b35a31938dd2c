"""web_metrics.py FILE: reads metrics as OpenMetrics and prints the names of the families; exits with 77 without the parser."""
import sys

try:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families
except ImportError:
    print("prometheus_client is missing")
    sys.exit(77)

for family in text_string_to_metric_families(open(sys.argv[1], encoding="utf-8").read()):
    assert family.documentation, family.name
    print(family.name, family.type, family.unit, len(family.samples))
