"""A serializer in place of pickle: requests as JSON."""

import json


def dumps(fields):
    """JSON of what `Request.to_dict` gives; bytes become text."""
    headers = [
        [name.decode("latin-1"), [value.decode("latin-1") for value in values]] for name, values in fields["headers"].items()
    ]
    return json.dumps({**fields, "body": fields["body"].decode("latin-1"), "headers": headers})


def loads(text):
    """What `dumps` was given."""
    fields = json.loads(text)
    headers = {name.encode("latin-1"): [value.encode("latin-1") for value in values] for name, values in fields["headers"]}
    return {**fields, "body": fields["body"].encode("latin-1"), "headers": headers}
