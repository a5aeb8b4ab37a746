"""If-Match, If-None-Match, If-Modified-Since, If-Unmodified-Since: for reads, for writes, and spelled wrongly."""
import concurrent.futures
import email.utils
import time

import pytest


@pytest.fixture
def doc(site, box):
    """A stored document: (path, its tag)."""
    return box + "k", site.put(box + "k", b"one").header("ETag")


def number(tag):
    return int(tag.strip('"'))


def stale(tag):
    return '"%d"' % (number(tag) - 1)


# reads

def test_not_modified_by_tag(site, doc):
    path, tag = doc
    got = site.get(path, {"If-None-Match": tag})
    assert got.status == 304 and got.body == b""
    assert got.header("ETag") == tag
    assert site.get(path, {"If-None-Match": stale(tag)}).status == 200


@pytest.mark.parametrize("form",
                         ["{0}", "W/{0}", '"x", {0}', '{0},"x"', ' "a" ,\t"b" , W/{0} ', '"", {0}', "*", ',, {0}, ,'])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_not_modified_by_any_spelling(site, doc, form, method):
    path, tag = doc
    got = site.http(method, path, None, {"If-None-Match": form.format(tag)})
    assert got.status == 304 and got.header("ETag") == tag


@pytest.mark.parametrize("form", ['"x"', '"x", W/"y"', '""', '"\xe4"', '"a,b"', '"{1}0"', '"0{1}"'])
def test_modified_when_no_tag_matches(site, doc, form):
    path, tag = doc
    got = site.get(path, {"If-None-Match": form.format(tag, number(tag))})
    assert got.status == 200 and got.body == b"one"


def test_if_match_on_a_read(site, doc):
    path, tag = doc
    assert site.get(path, {"If-Match": tag}).status == 200
    assert site.get(path, {"If-Match": "*"}).status == 200
    assert site.get(path, {"If-Match": stale(tag)}).status == 412
    assert site.head(path, {"If-Match": stale(tag)}).status == 412


def test_not_modified_since(site, doc):
    path, _ = doc
    modified = site.get(path).header("Last-Modified")
    when = email.utils.parsedate_to_datetime(modified).timestamp()
    def at(delta):
        return email.utils.formatdate(when + delta, usegmt=True)
    got = site.get(path, {"If-Modified-Since": modified})
    assert got.status == 304 and got.body == b"" and got.header("ETag") == doc[1]
    assert site.get(path, {"If-Modified-Since": at(+3600)}).status == 304
    assert site.get(path, {"If-Modified-Since": at(-1)}).status == 200
    assert site.get(path, {"If-Unmodified-Since": modified}).status == 200
    assert site.get(path, {"If-Unmodified-Since": at(-1)}).status == 412


def test_the_older_date_forms(site, doc):
    path, _ = doc
    when = time.gmtime(email.utils.parsedate_to_datetime(site.get(path).header("Last-Modified")).timestamp())
    days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    long_days = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
    months = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
    clock = "%02d:%02d:%02d" % (when.tm_hour, when.tm_min, when.tm_sec)
    rfc850 = "%s, %02d-%s-%02d %s GMT" % (long_days[when.tm_wday], when.tm_mday, months[when.tm_mon - 1],
                                         when.tm_year % 100, clock)
    asctime = "%s %s %2d %s %d" % (days[when.tm_wday], months[when.tm_mon - 1], when.tm_mday, clock, when.tm_year)
    assert site.get(path, {"If-Modified-Since": rfc850}).status == 304
    assert site.get(path, {"If-Modified-Since": asctime}).status == 304


def test_tags_go_before_dates(site, doc):
    path, tag = doc
    modified = site.get(path).header("Last-Modified")
    old = email.utils.formatdate(0, usegmt=True)
    assert site.get(path, {"If-None-Match": stale(tag), "If-Modified-Since": modified}).status == 200
    assert site.get(path, {"If-None-Match": tag, "If-Modified-Since": old}).status == 304
    assert site.get(path, {"If-Match": tag, "If-Unmodified-Since": old}).status == 200


def test_failed_match_goes_before_not_modified(site, doc):
    path, tag = doc
    assert site.get(path, {"If-Match": stale(tag), "If-None-Match": tag}).status == 412


def test_dates_do_not_matter_to_a_write_with_modified_since(site, doc):
    path, _ = doc
    modified = site.get(path).header("Last-Modified")
    assert site.put(path, b"two", {"If-Modified-Since": modified}).status == 204


def test_missing_documents_are_missing_whatever_the_condition(site, box):
    for headers in ({}, {"If-None-Match": "*"}, {"If-None-Match": '"1"'},
                    {"If-Modified-Since": email.utils.formatdate(usegmt=True)}):
        assert site.get(box + "k", headers).status == 404, headers


# writes

@pytest.mark.smoke
def test_if_match_guards_a_replacement(site, doc):
    path, tag = doc
    second = site.put(path, b"two", {"If-Match": tag})
    assert second.status == 204
    lost = site.put(path, b"three", {"If-Match": tag})
    assert lost.status == 412 and lost.header("Content-Type") == "application/problem+json"
    assert site.get(path).body == b"two"


@pytest.mark.parametrize("form", ["{0}", "W/{0}", '"x", {0}', 'W/"x",W/{0}', "*"])
def test_matching_spellings_let_a_write_through(site, doc, form):
    path, tag = doc
    assert site.put(path, b"two", {"If-Match": form.format(tag)}).status == 204


@pytest.mark.parametrize("form",
                         ['"x"', '""', '"{1}0"', '"0{1}"', '"+{1}"', '"\xe4"', '"18446744073709551616"', '"-1"'])
def test_other_tags_stop_a_write(site, doc, form):
    path, tag = doc
    assert site.put(path, b"two", {"If-Match": form.format(tag, number(tag))}).status == 412
    assert site.delete(path, {"If-Match": form.format(tag, number(tag))}).status == 412
    got = site.get(path)
    assert (got.body, got.header("ETag")) == (b"one", tag)


def test_if_match_on_a_missing_document(site, box):
    assert site.put(box + "k", b"x", {"If-Match": "*"}).status == 412
    assert site.put(box + "k", b"x", {"If-Match": '"1"'}).status == 412
    assert site.delete(box + "k", {"If-Match": "*"}).status in (404, 412)
    assert site.get(box + "k").status == 404


def test_create_only(site, box):
    assert site.put(box + "k", b"one", {"If-None-Match": "*"}).status == 201
    assert site.put(box + "k", b"two", {"If-None-Match": "*"}).status == 412
    assert site.get(box + "k").body == b"one"
    site.delete(box + "k")
    assert site.put(box + "k", b"three", {"If-None-Match": "*"}).status == 201


def test_if_none_match_with_tags_on_a_write(site, doc):
    path, tag = doc
    assert site.put(path, b"two", {"If-None-Match": tag}).status == 412
    assert site.put(path, b"two", {"If-None-Match": "W/" + tag}).status == 412
    assert site.put(path, b"two", {"If-None-Match": '"x"'}).status == 204
    assert site.delete(path, {"If-None-Match": "*"}).status == 412


def test_unmodified_since_guards_a_write(site, doc):
    path, _ = doc
    modified = site.get(path).header("Last-Modified")
    assert site.put(path, b"two", {"If-Unmodified-Since": email.utils.formatdate(0, usegmt=True)}).status == 412
    assert site.delete(path, {"If-Unmodified-Since": email.utils.formatdate(0, usegmt=True)}).status == 412
    assert site.get(path).body == b"one"
    assert site.put(path, b"two", {"If-Unmodified-Since": modified}).status == 204


def test_delete_with_if_match(site, doc):
    path, tag = doc
    assert site.delete(path, {"If-Match": stale(tag)}).status == 412
    assert site.delete(path, {"If-Match": tag}).status == 204


def test_twenty_creators_one_winner(site, box):
    def create(i):
        link = site.link()
        try:
            return link.once("PUT", box + "k", b"%d" % i,
                             {"If-None-Match": "*", "Authorization": "Bearer " + site.token}).status
        finally:
            link.close()
    for _ in range(5):
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            got = sorted(pool.map(create, range(20)))
        assert got == [201] + [412] * 19
        site.delete(box + "k")


def test_twenty_replacements_of_one_tag_one_winner(site, doc):
    path, tag = doc
    def replace(i):
        link = site.link()
        try:
            return link.once("PUT", path, b"%d" % i, {"If-Match": tag, "Authorization": "Bearer " + site.token}).status
        finally:
            link.close()
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        assert sorted(pool.map(replace, range(20))) == [204] + [412] * 19


# wrong spellings

WRONG = ["abc", "1", '"abc', 'abc"', "W/abc", 'w/"1"', 'W /"1"', 'W/ "1"', '"a" "b"', '"a"x', '*, "1"', '"1", *', "**",
         "'1'", '"a b" c', '"a"b"', 'W/', '"a";"b"', '"a\x7f"', "\xff\xfe", '"1"\t"2"']


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("header", ["If-Match", "If-None-Match"])
def test_malformed_tags_are_refused(site, doc, header, wrong):
    path, tag = doc
    for method in ("GET", "PUT", "DELETE"):
        got = site.http(method, path, b"two" if method == "PUT" else None, {header: wrong})
        assert got.status == 400, (method, got)
        assert header in got.json()["detail"]
    got = site.get(path)
    assert (got.body, got.header("ETag")) == (b"one", tag)


@pytest.mark.parametrize("header", ["If-Match", "If-None-Match"])
def test_a_precondition_given_twice(site, doc, header):
    """nginx 1.22 hands both on, later ones join them; in no case is one of them overlooked."""
    path, tag = doc
    got = site.links[False].request("PUT", path, b"two", [("Authorization", "Bearer " + site.token),
                                                          (header, stale(tag)), (header, '"x"')])
    if header == "If-Match":
        assert got.status in (400, 412)
    else:
        assert got.status in (400, 204)


WRONG_DATES = ["yesterday", "2026-11-30T00:00:00Z", "Mon, 30 Feb 2026 00:00:00 GMT", "0",
               "Mon, 30 Nov 2026 25:00:00 GMT", "Mon, 30 Nov 2026 00:00:00 +0100", "1795996800",
               "Mon, 30 Nov 99999 00:00:00 GMT"]


@pytest.mark.parametrize("wrong", WRONG_DATES)
def test_malformed_dates_never_pass_for_true(site, doc, wrong):
    """A date that cannot be read is refused (or, for a read, ignored as RFC 9110 asks), never taken as some date."""
    path, _ = doc
    assert site.get(path, {"If-Modified-Since": wrong}).status in (200, 400)
    assert site.put(path, b"two", {"If-Unmodified-Since": wrong}).status in (204, 400)


def test_very_long_list_of_tags(site, doc):
    path, tag = doc
    many = ", ".join('"x%d"' % i for i in range(500))
    assert site.get(path, {"If-None-Match": many}).status == 200
    assert site.get(path, {"If-None-Match": many + ", " + tag}).status == 304
