"""Pools of texts for the literals of generated expressions. See :mod:`dra_testing.cel_literals`."""

from __future__ import annotations

from dra_testing.cel_devices import QUANTITIES, VERSIONS

#: Texts that become string literals, by the word of a template that asks for them.
SPECIAL: dict[str, list[str]] = {
    "part": [
        "a", "A", "-", "", ".", "b", "1", "00", " ", "e", "GB", ":", "x", "com", "an", "\u00fc",
        "10",
    ],
    "text": ["id-", "", "v", "a/b/", "prefix: "],
    "some_string": ["a", "b", "fast", "gpu.example.com", "A100-SXM4-40GB", "x", "z", "eu-west-1"],
    "driver": ["gpu.example.com", "nic.example.com", "dra.example.com", "tpu.vendor.io"],
    "number": [
        "1", "-5", "42", "1.5", "0", "1e3", "007", "+3", "NaN", "inf", "18446744073709551615",
    ],
    "boolean": ["true", "false", "True", "1", "t", "TRUE", "0"],
    "unicode": [
        "\u00fcber\U0001f600", "\u65e5\u672c\u8a9e", "e\u0301a", "\xa0pad\u2003", "\u0130I\u0131",
        "\ufb01", "\u1f88", "a\u200bb", "\u00dfSS", "\U0001f468\u200d\U0001f469",
        "\u03a3\u03c3\u03c2", "K\u212a", "\ufeffx", "\u2028\x85",
    ],
    "unicode_part": [
        "\u00fc", "\U0001f600", "\u8a9e", "\u0301", "", "\u200d", "i", "s", "\u00df",
    ],
    "unicode_regex": [
        "\\pL+", "^.{3}$", "(?i)\u00fc", "\\p{Han}", "[\u00e0-\u00ff]", "\\w+", "\\S",
        "\U0001f600$",
    ],
    "regex": [
        "^A", "[0-9]+", "A[0-9]+-.*", "(?i)h100", "^$", ".*", "\\d{2,3}", "(a|b)+c?", "x*",
        "^\\w+[-.]\\w+", "[^-]+", "\\bGB\\b", "^[a-z0-9-]{1,63}$", "(?P<n>[0-9])", "\\.",
        "(?s)a.b", "[[:alpha:]]", "\\x41", "a{0}", "(\\d+)-(\\d+)", "GPU|gpu", "\\Aa",
        "\u00e9|\u00fc",
    ],
    "duration": [
        "1s", "1h30m", "0s", "-5m", "1.5s", "100ms", "24h", "1us", "1h", "3ns", "90m", "36h0.5s",
    ],
    "timestamp": [
        "2024-02-29T12:00:00Z", "1970-01-01T00:00:00Z", "2023-12-31T23:59:59.999Z",
        "2024-06-01T00:00:00+02:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z",
        "2024-02-29T12:00:00.123456789-07:00",
    ],
    "zone": [
        "UTC", "Europe/Berlin", "America/New_York", "+02:00", "-08:30", "Asia/Kolkata", "02:00",
        "00:00", "",
    ],
    "quantity": [*QUANTITIES, "10Gi", "+1", "1.0", "5M", "3Mi", "2u", "1E2", ".5", "7.", "0Ki"],
    "version": [*VERSIONS, "1.0.0", "2.0.0", "1.2.4", "3.1.4-beta"],
    "loose_version": [
        "v1.2.3", "1.2", "1", "v01.2.3", "1.02.3", "1.2.3", "v1", "1.2-rc.1", "V1.0.0", "1.0.0.0",
    ],
    "url": [
        "https://example.com", "https://example.com:443/a/b?x=1&x=2&y=", "/path",
        "http://[::1]:80/", "/a%20b?q=%41", "https://user:pw@host.example.com/", "ftp://h/",
        "https://example.com/p#frag", "mailto:a@b.c", "/?", "https://a.b/c?k=1;l=2",
        "http://EXAMPLE.com/\u00e9", "//host/path", "https://h/a b", "/x?k1=a&k2=b&k2=c",
    ],
    "query_key": ["x", "q", "k1", "k2", "y"],
    "ip": [
        "10.0.0.7", "127.0.0.1",
        "0.0.0.0",  # noqa: S104
        "::1", "fe80::1", "fd00::1", "ff02::1", "224.0.0.1", "169.254.1.1",
        "2001:db8::ff00:42:8329", "::", "192.168.1.1", "255.255.255.255", "2001:DB8::1",
    ],
    "cidr": [
        "10.0.0.0/24", "10.0.0.7/8", "0.0.0.0/0", "fd00::/8", "::1/128", "192.168.0.0/16",
        "2001:db8::/32", "10.0.0.7/32",
    ],
    "format_name": [
        "dns1123Label", "uuid", "date", "byte", "uri", "labelValue", "nope", "dns1035Label",
        "dns1123Subdomain", "qualifiedName", "datetime", "", "dns1123LabelPrefix",
    ],
    "formatted": [
        "my-label", "123e4567-e89b-12d3-a456-426614174000", "2021-01-01", "aGVsbG8=",
        "https://example.com", "a.b.c", "example.com/name", "2021-01-01T00:00:00Z", "-bad",
        "UPPER", "a_b", "", "x" * 64, "a-", "not a thing", "1abc",
    ],
    "name": [
        "my-label", "a", "gpu-0", "Bad_Name", "a.b", "",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "0a", "-",
        "123e4567-e89b-12d3-a456-426614174000",
    ],
}  # fmt: skip
#: Texts that are not of the form.
WRONG_TEXTS: dict[str, list[str]] = {
    "number": ["", "abc", "1.5x", "--1", "9223372036854775808", "0x10"],
    "boolean": ["yes", "", "tRUE"],
    "regex": ["(", "[a-", "\\1", "(?=a)", "a{2,1}", "*", "\\pX", "a{1001}", "(?<n>a)b"],
    "unicode_regex": ["(", "\\p{Nope}"],
    "duration": ["1d", "", "1", "s", "9999999999h", "1h-30m"],
    "timestamp": ["2024-02-30T00:00:00Z", "yesterday", "", "2024-01-01", "10000-01-01T00:00:00Z"],
    "zone": ["Mars/Phobos", "+25:00", "2:00", "Local", "+1"],
    "quantity": [
        "", "abc", "1 Gi", "Gi", "1KiB", "10g", "1.2.3", "0x1", "1e1000", "--1", "1\u0663",
    ],
    "version": [
        "", "1.2", "v1.2.3", "01.2.3", "1.2.3.4", "1.2.3-", "a.b.c", "1.2.3+",
        "18446744073709551616.0.0",
    ],
    "loose_version": ["", "a", "v", "1..2", "1.2.3-\u00e9"],
    "url": [
        "example.com", "", "http://[::1", ":", "://x", "relative/path", "https://h:port/",
        "http://a b/", "\x7f",
    ],
    "query_key": ["nope"],
    "ip": [
        "", "10.0.0", "256.0.0.1", "::ffff:1.2.3.4", "fe80::1%eth0", "1.2.3.4/8", "01.2.3.4",
        "::g",
    ],
    "cidr": [
        "", "10.0.0.0", "10.0.0.0/33", "::ffff:10.0.0.0/100", "10.0.0.0/024", "fe80::1%eth0/64",
        "10.0.0.0/-1",
    ],
}  # fmt: skip
#: Texts that stand as they are.
RAW: dict[str, list[str]] = {
    "zero": ["0"],
    "index": ["0", "0", "0", "0", "1", "1", "2", "3", "-1", "5"],
    "double_index": ["0.0", "1.0", "1.5"],
    "some_int": ["1", "2", "3", "10", "7"],
    "some_uint": ["1u", "2u", "7u"],
    "some_double": ["2.0", "0.5", "4.0", "0.0"],
    "small": ["0", "1", "3", "5", "10", "-1"],
    "depth": ["1", "2", "3", "0", "-1"],
    "truth": ["true", "true", "false"],
    "field": ["a", "a", "b", "b", "x", "fast"],
    "device_field": ["driver", "attributes", "capacity", "allowMultipleAllocations"],
    "type": [
        "int", "string", "bool", "double", "uint", "bytes", "list", "map", "type", "null_type",
        "google.protobuf.Duration", "google.protobuf.Timestamp", "optional_type", "net.IP",
        "net.CIDR",
    ],
    "clause_int": ["'%d'", "'%x'", "'%X'", "'%o'", "'%b'", "'%s'", "'%d!'"],
    "clause_uint": ["'%d'", "'%x'", "'%X'", "'%o'", "'%b'", "'%s'"],
    "clause_double": ["'%f'", "'%.2f'", "'%e'", "'%.0e'", "'%s'", "'%.10f'"],
    "clause_string": ["'%s'", "'%x'", "'%X'", "'<%s>'", "'%%%s%%'"],
    "clause_bool": ["'%s'", "'%b'"],
    "clause_bytes": ["'%x'", "'%X'", "'%s'"],
    "format": [
        "format.dns1123Label()", "format.dns1123Subdomain()", "format.dns1035Label()",
        "format.qualifiedName()", "format.dns1123LabelPrefix()",
        "format.dns1123SubdomainPrefix()", "format.dns1035LabelPrefix()", "format.labelValue()",
        "format.uri()", "format.uuid()", "format.byte()", "format.date()", "format.datetime()",
    ],
}  # fmt: skip
