#include "handlers/auth_page.h"

#include "fcgi/path.h"
#include "handlers/html.h"
#include "handlers/store.h"

/* The policy names this very text by its hash: a change here needs another one there; a test
 * compares them. */
static const char style[] =
    "*{box-sizing:border-box}"
    "body{margin:0;min-height:100vh;display:grid;place-items:center;padding:1rem;"
    "font:1rem/1.5 system-ui,sans-serif;color:#2b2926;background:#f4f0e6}"
    "main{width:100%;max-width:22rem;padding:2rem;border-radius:.75rem;background:#fffdf8;"
    "box-shadow:0 1px 3px #0002,0 8px 24px #0001}"
    "h1{margin:0 0 1.25rem;font-size:1.5rem;line-height:1.2}"
    "label{display:block;margin:1rem 0 .25rem;font-weight:600}"
    "input{width:100%;padding:.6rem .7rem;font:inherit;color:inherit;background:#fff;"
    "border:1px solid #8c857a;border-radius:.4rem}"
    "button{width:100%;margin-top:1.5rem;padding:.7rem;font:inherit;font-weight:600;color:#fff;"
    "background:#2f5d50;border:0;border-radius:.4rem;cursor:pointer}"
    "button:hover{background:#244a40}"
    "button.quiet{margin-top:.75rem;color:#2f5d50;background:none;border:1px solid #2f5d50}"
    "button.quiet:hover{background:#2f5d5014}"
    ":focus-visible{outline:3px solid #a86a00;outline-offset:2px}"
    ".error{margin:0 0 1rem;padding:.6rem .8rem;border-left:4px solid #b3261e;"
    "background:#fbe9e7;color:#7a1a14}"
    "p{margin:0;overflow-wrap:anywhere}"
    "@media(prefers-color-scheme:dark){body{color:#ece7dc;background:#1d1b18}"
    "main{background:#282521}input{background:#1d1b18;border-color:#8c857a}"
    "button{background:#3f7a69}button:hover{background:#4a8d7a}"
    "button.quiet{color:#9fd3c3;border-color:#9fd3c3}"
    ":focus-visible{outline-color:#c98a1b}"
    ".error{background:#43201d;color:#ffcdc8}}";

#define STYLE_HASH "sha256-heXeqPrA+nQuyp/heynbyVeV80jc2bidwV3k6xB6AR8="

static void put_head(struct json *j, const char *title)
{
    json_raw(j, "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
                "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
                "<meta name=\"color-scheme\" content=\"light dark\">\n"
                "<title>");
    json_raw(j, title);
    json_raw(j, "</title>\n<style>");
    json_raw(j, style);
    json_raw(j, "</style>\n<main>\n");
}

static void put_hidden(struct json *j, const char *name, struct str value)
{
    json_raw(j, "<input type=\"hidden\" name=\"");
    json_raw(j, name);
    json_raw(j, "\" value=\"");
    html_text(j, value);
    json_raw(j, "\">\n");
}

static void put_form(struct json *j, struct str mount, const char *action)
{
    json_raw(j, "<form method=\"post\" action=\"");
    html_text(j, mount);
    json_raw(j, action);
    json_raw(j, "\">\n");
}

static void put_login(struct json *j, struct str mount, const struct auth_page *page)
{
    bool again = page->error != NULL;
    json_raw(j, "<h1>Log in</h1>\n");
    if (again) {
        json_raw(j, "<p class=\"error\" id=\"error\" role=\"alert\">");
        json_raw(j, page->error);
        json_raw(j, "</p>\n");
    }
    put_form(j, mount, "/auth/login");
    if (page->next.n > 0)
        put_hidden(j, "next", page->next);
    json_raw(j, "<label for=\"user\">Name</label>\n"
                "<input id=\"user\" name=\"user\" autocomplete=\"username\" autocapitalize=\"none\""
                " spellcheck=\"false\" maxlength=\"64\" required");
    json_raw(j, again ? " aria-describedby=\"error\" value=\"" : " autofocus value=\"");
    html_text(j, page->name);
    json_raw(j, "\">\n<label for=\"password\">Password</label>\n"
                "<input id=\"password\" name=\"password\" type=\"password\""
                " autocomplete=\"current-password\" required");
    json_raw(j, again ? " autofocus>\n" : ">\n");
    json_raw(j, "<button>Log in</button>\n</form>\n");
}

static void put_logout(struct json *j, struct str mount, const struct auth_page *page)
{
    json_raw(j, "<h1>Logged in</h1>\n<p>You are logged in as <b>");
    html_text(j, page->user);
    json_raw(j, "</b>.</p>\n");
    put_form(j, mount, "/auth/logout");
    json_raw(j, "<button>Log out</button>\n"
                "<button class=\"quiet\" name=\"everywhere\" value=\"1\">Log out on all devices"
                "</button>\n</form>\n");
}

/* Referrer-Policy: with no-referrer a browser would send "Origin: null" along with the form. */
static void put_headers(struct resp *r, unsigned status)
{
    resp_start(r, status);
    resp_header(r, "Content-Type", STR_LIT("text/html; charset=utf-8"));
    resp_header(r, "Cache-Control", STR_LIT("no-store"));
    resp_header(r, "X-Content-Type-Options", STR_LIT("nosniff"));
    resp_header(r, "X-Frame-Options", STR_LIT("DENY"));
    resp_header(r, "Referrer-Policy", STR_LIT("same-origin"));
    resp_header(r, "Content-Security-Policy",
                STR_LIT("default-src 'none'; style-src '" STYLE_HASH "'; form-action 'self'; "
                        "base-uri 'none'; frame-ancestors 'none'"));
    if (status == 401)
        resp_header(r, "WWW-Authenticate", STR_LIT("Bearer realm=\"hanji\""));
}

void auth_page(struct call *c, const struct auth_page *page)
{
    struct session *s = session_of(c);
    struct json j = json_start(&s->text);
    s->link.len = 0;
    bool ok = path_encode(&s->link, s->mount);
    struct str mount = {(const char *)s->link.data, s->link.len};
    put_head(&j, page->user.n > 0 ? "Logged in" : "Log in");
    if (page->user.n > 0)
        put_logout(&j, mount, page);
    else
        put_login(&j, mount, page);
    json_raw(&j, "</main>\n</html>\n");
    put_headers(c->resp, page->status);
    resp_body(c->resp, s->text.data, s->text.len);
    if (j.failed || !ok)
        c->resp->failed = true;
}
