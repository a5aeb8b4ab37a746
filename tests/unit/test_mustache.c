/* handlers/mustache beyond the specification: errors and where they are, caps, how the source is asked, white space of
 * partials and blocks, several threads. The specification's own tests are in test_mustache_spec.c. */
#include "handlers/mustache.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/run.h"

/* ---- a source: tables in C; each ends with a line of zeroes ---- */

struct thing {
    const char *name;
    enum mustache_kind kind;
    const char *text;
    const struct thing *inside; /* a context's names, a list's items */
};

struct asked {
    const struct thing *root;
    char said[1 << 10]; /* what was asked, in order */
    int left;           /* calls that go well; below 0: all */
    char text[64];      /* of the value that was given last; others are overwritten */
    uint64_t items;     /* of the list "endless", that were given */
};

static bool goes_well(struct asked *a, const char *what, struct str name)
{
    size_t n = strlen(a->said);
    snprintf(a->said + n, sizeof a->said - n, "%s%.*s ", what, (int)name.n, name.p);
    memset(a->text, '#', sizeof a->text);
    return a->left < 0 || a->left-- > 0;
}

static void give(struct asked *a, const struct thing *t, struct mustache_value *v)
{
    v->kind = t->kind;
    v->of = (void *)t->inside;
    if (t->text != NULL) {
        ck_assert_uint_lt(strlen(t->text), sizeof a->text);
        memcpy(a->text, t->text, strlen(t->text));
        v->text = (struct str){a->text, strlen(t->text)};
    }
}

static bool find(void *arg, const struct mustache_value *context, struct str name, struct mustache_value *v)
{
    struct asked *a = arg;
    if (!goes_well(a, context != NULL ? "?" : "", name))
        return false;
    if (str_eq(name, STR_LIT("endless"))) {
        v->kind = MUSTACHE_LIST;
        return true;
    }
    if (context != NULL && context->kind == MUSTACHE_LIST) { /* of the first item */
        const struct thing *items = context->of;
        if (items == NULL || items[0].kind != MUSTACHE_CONTEXT)
            return true;
        for (const struct thing *t = items[0].inside; t->name != NULL; t++)
            if (str_eq(name, (struct str){t->name, strlen(t->name)}))
                give(a, t, v);
        return true;
    }
    for (const struct thing *t = context != NULL ? context->of : a->root; t != NULL && t->name != NULL; t++)
        if (str_eq(name, (struct str){t->name, strlen(t->name)}))
            give(a, t, v);
    return true;
}

static bool next(void *arg, const struct mustache_value *list, struct mustache_value *item)
{
    struct asked *a = arg;
    const struct thing *items = list->of;
    if (!goes_well(a, "+", STR_LIT("")))
        return false;
    if (items == NULL) {
        item->kind = MUSTACHE_FALSE;
        a->items++;
        return true;
    }
    item->index = item->kind == MUSTACHE_ABSENT ? 0 : item->index + 1;
    give(a, &items[item->index], item);
    return true;
}

static bool some(void *arg, const struct mustache_value *list, bool *any)
{
    const struct thing *items = list->of;
    *any = items[0].kind != MUSTACHE_ABSENT;
    return goes_well(arg, "!", STR_LIT(""));
}

#define TEXT(name, text) {name, MUSTACHE_TEXT, text, NULL}
#define END {NULL, MUSTACHE_ABSENT, NULL, NULL}

static const struct thing first[] = {TEXT("n", "1"), TEXT("who", "Ann"), END};
static const struct thing second[] = {TEXT("n", "2"), {"who", MUSTACHE_FALSE, NULL, NULL}, END};
static const struct thing rows[] = {{NULL, MUSTACHE_CONTEXT, NULL, first}, {NULL, MUSTACHE_CONTEXT, NULL, second}, END};
static const struct thing one[] = {TEXT("who", "inner"), {"deep", MUSTACHE_CONTEXT, NULL, first}, END};
static const struct thing words[] = {TEXT(NULL, "a"), TEXT(NULL, "<"), {NULL, MUSTACHE_FALSE, NULL, NULL}, TEXT(NULL, ""), END};
static const struct thing nothing[] = {END};
static const struct thing root[] = {
    TEXT("title", "T & U"),
    TEXT("who", "outer"),
    TEXT("empty", ""),
    TEXT("lines", "x\ny"),
    {"no", MUSTACHE_FALSE, NULL, NULL},
    {"zero", MUSTACHE_FALSE, "0", NULL},
    {"rows", MUSTACHE_LIST, NULL, rows},
    {"words", MUSTACHE_LIST, NULL, words},
    {"none", MUSTACHE_LIST, NULL, nothing},
    {"one", MUSTACHE_CONTEXT, NULL, one},
    END,
};

/* ---- partials: pairs of name and text ---- */

static bool load(void *arg, struct str name, struct str *text)
{
    for (const char *const *p = arg; p != NULL && *p != NULL; p += 2)
        if (str_eq(name, (struct str){*p, strlen(*p)})) {
            *text = (struct str){p[1], strlen(p[1])};
            return true;
        }
    return false;
}

static struct str str(const char *s)
{
    return (struct str){s, strlen(s)};
}

static struct mustache *compile(const char *text, const char *const *partials)
{
    struct mustache_input input = {.text = str(text), .arg = (void *)partials, .load = load};
    struct mustache_error error;
    struct mustache *t = mustache_compile(&input, &error);
    ck_assert_msg(t != NULL, "%s:%u:%u: %s", error.file, error.line, error.column, error.text);
    return t;
}

static struct buf text, spare;
static struct asked asked;
static const struct mustache_source source = {&asked, find, next, some};

/* Renders; text has a NUL at its end. */
static enum mustache_result render(const struct mustache *t, size_t max_bytes)
{
    struct mustache_out out = {&text, &spare, max_bytes};
    int left = asked.left;
    text.len = 0;
    asked = (struct asked){.root = root, .left = left};
    enum mustache_result result = mustache_render(t, &source, &out);
    ck_assert_uint_le(text.len, max_bytes);
    ck_assert_uint_eq(spare.len, 0);
    ck_assert(buf_add(&text, "", 1, SIZE_MAX));
    return result;
}

static void renders(const char *template, const char *const *partials, const char *expected)
{
    struct mustache *t = compile(template, partials);
    asked.left = -1;
    ck_assert_int_eq(render(t, 1 << 20), MUSTACHE_OK);
    ck_assert_str_eq((char *)text.data, expected);
    mustache_free(t);
}

static void clean(void)
{
    buf_free(&text);
    buf_free(&spare);
}

/* ---- values ---- */

static const struct {
    const char *template;
    const char *expected;
} values[] = {
    {"{{zero}}{{&zero}}{{#zero}}not{{/zero}}{{^zero}}none{{/zero}}", "00none"},
    {"{{rows.who}} {{rows.n}} {{none.who}}{{words.who}}{{#rows}}{{rows.n}}{{/rows}}", "Ann 1 11"},
    {"", ""},
    {"no tags", "no tags"},
    {"\xef\xbb\xbf{{who}}", "outer"},
    {"{{title}} {{{title}}} {{&title}}", "T &amp; U T & U T & U"},
    {"[{{absent}}{{no}}{{empty}}{{rows}}{{one}}]", "[]"},
    {"{{#title}}{{.}}{{/title}}", "T &amp; U"},
    {"{{#title}}{{who}}{{.}}{{/title}}", "outerT &amp; U"},
    {"{{#title}}{{#lines}}{{.}}{{/lines}}{{.}}{{/title}}", "x\nyT &amp; U"},
    {"{{#title}}{{#one}}{{who}}{{.}}{{/one}}{{.}}{{/title}}", "innerT &amp; U"},
    {"{{#empty}}there{{.}}{{/empty}}{{^empty}}not{{/empty}}", "there"},
    {"{{#no}}there{{/no}}{{^no}}not{{/no}}", "not"},
    {"{{#absent}}there{{/absent}}{{^absent}}not{{/absent}}", "not"},
    {"{{#rows}}{{n}}{{who}};{{/rows}}", "1Ann;2;"},
    {"{{#rows}}{{title}}{{/rows}}", "T &amp; UT &amp; U"},
    {"{{#words}}[{{.}}]{{/words}}", "[a][&lt;][][]"},
    {"{{#words}}{{#one}}{{who}}{{/one}}{{.}} {{/words}}", "innera inner&lt; inner inner "},
    {"{{#words}}{{#rows}}{{n}}{{/rows}}{{.}}{{/words}}", "12a12&lt;1212"},
    {"{{^none}}none{{/none}}{{#none}}some{{/none}}", "none"},
    {"{{^rows}}none{{/rows}}{{#rows}}{{n}}{{/rows}}", "12"},
    {"{{#rows}}{{#rows}}{{n}}{{/rows}}|{{/rows}}", "12|12|"},
    {"{{one.who}} {{one.deep.who}} {{one.deep.who.x}} {{one.absent.who}} {{title.who}} {{rows.n}}", "inner Ann    1"},
    {"{{#one.deep}}{{n}}{{/one.deep}}{{^one.x}}!{{/one.x}}", "1!"},
    {"{{#one}}{{#deep}}{{n}}{{who}}{{title}}{{/deep}}{{who}}{{/one}}", "1AnnT &amp; Uinner"},
    {"{{=<% %>=}}<%who%>{{who}}<%={{ }}=%>{{who}}", "outer{{who}}outer"},
    {"{{=$$ $$=}}$$who$$ $${title}$$", "outer T & U"},
    {"{{! a comment, with }} and {{who}}", " and outer"},
    {"{{\n  who\n}}", "outer"},
    {"}} {who} { {who} }", "}} {who} { {who} }"},
};

START_TEST(value)
{
    renders(values[_i].template, NULL, values[_i].expected);
    clean();
}
END_TEST

/* ---- white space ---- */

static const char *const partials[] = {
    "p", "a\n\n{{who}}\nb\n",
    "tags", "{{who}} 1\n{{#no}}{{/no}}2\n{{! }}3\n{{#one}}\n4\n{{/one}}\n",
    "outer", "<\n  {{>p}}\n>\n",
    "inline", "<{{>p}}>\n",
    "layout", "<main>\n  {{$body}}\n    default\n  {{/body}}\n</main>\n",
    "short", "<h1>{{$body}}default{{/body}}</h1>\n",
    "lead", "  {{$body}}one\n  two{{/body}}\n",
    "crlf", "a\r\n\r\nb\r\n",
    "page", "{{<layout}}\n  {{$body}}\n    <h1>{{$title}}?{{/title}}</h1>\n    {{$rest}}\n    {{/rest}}\n  {{/body}}\n"
            "{{/layout}}\n",
    "itself", "{{$x}}{{/x}}{{<short}}{{/short}}",
    NULL,
};

static const struct {
    const char *template;
    const char *expected;
} lines[] = {
    {"  {{>p}}\n.", "  a\n\n  outer\n  b\n."}, /* an empty line stays empty */
    {"\t{{>p}}  \r\n.", "\ta\n\n\touter\n\tb\n."},
    {"- {{>p}}.", "- a\n\nouter\nb\n."}, /* in a line: as it is */
    {"  {{>p}} .\n", "  a\n\nouter\nb\n .\n"},
    {"  {{>tags}}\n", "  outer 1\n  2\n  3\n  4\n"},
    {"  {{>outer}}\n", "  <\n    a\n\n    outer\n    b\n  >\n"}, /* indentations add up */
    {"  {{>inline}}\n", "  <a\n\nouter\nb\n>\n"},
    {"  {{>crlf}}\r\n", "  a\r\n\r\n  b\r\n"},
    {"{{#rows}}\n  {{>short}}\n{{/rows}}\n", "  <h1>default</h1>\n  <h1>default</h1>\n"},
    {"{{>layout}}", "<main>\n    default\n</main>\n"},
    {"  {{>layout}}\n", "  <main>\n      default\n  </main>\n"},
    /* what fills a block gets its place, whatever it was written with */
    {"{{<layout}}\n{{$body}}\n<p>\n  x\n</p>\n{{/body}}\n{{/layout}}\n", "<main>\n    <p>\n      x\n    </p>\n</main>\n"},
    {"{{<layout}}\n      {{$body}}\n        <p>\n          x\n      y\n        </p>\n      {{/body}}\n{{/layout}}\n",
     "<main>\n    <p>\n      x\n    y\n    </p>\n</main>\n"},
    {"  {{<layout}}{{$body}}\n<p>\n{{/body}}{{/layout}}\n.", "  <main>\n      <p>\n  </main>\n."},
    {"  {{<layout}}{{$body}}\n<p>\n{{/body}}{{/layout}}.\n", "  <main>\n    <p>\n</main>\n.\n"},
    {"{{<layout}}{{$body}}\n\n\n    x\n\n    y\n{{/body}}{{/layout}}", "<main>\n\n\n    x\n\n    y\n</main>\n"},
    {"{{<short}}{{$body}}x{{/body}}{{/short}}", "<h1>x</h1>\n"},
    {"  {{<short}}\n  {{$body}}\n  x\n  {{/body}}\n  {{/short}}\n", "  <h1>x\n</h1>\n"},
    {"{{<short}}{{$body}}  {{/body}}{{/short}}", "<h1>  </h1>\n"},
    {"{{<short}}{{$body}}{{/body}}{{/short}}", "<h1></h1>\n"},
    {"{{>lead}}", "  one\n  two\n"},
    {"{{<lead}}{{$body}}1\n2{{/body}}{{/lead}}", "  1\n  2\n"},
    {" {{<lead}}{{$body}}\n1\n2{{/body}}{{/lead}}\n", "   1\n   2\n"},
    {"{{<layout}}{{$body}}\n{{lines}}\n{{/body}}{{/layout}}", "<main>\n    x\ny\n</main>\n"}, /* values stay as they are */
    {"{{<layout}}{{$body}}\n{{#rows}}\n{{n}}\n{{/rows}}\n{{/body}}{{/layout}}", "<main>\n    1\n    2\n</main>\n"},
    {"{{<layout}}{{$body}}\n  {{#rows}}\n    {{n}}\n  {{/rows}}\n{{/body}}{{/layout}}", "<main>\n      1\n      2\n</main>\n"},
    {"{{<page}}{{$title}}x{{/title}}{{$rest}}\n1\n2\n{{/rest}}{{/page}}", "<main>\n    <h1>x</h1>\n    1\n    2\n</main>\n"},
    {"{{>page}}", "<main>\n    <h1>?</h1>\n</main>\n"},
    /* a block of a file is filled by those that include the file, not by what it fills itself */
    {"{{<short}}{{$body}}{{<short}}{{/short}}{{/body}}{{/short}}", "<h1><h1>default</h1>\n</h1>\n"},
    {"{{<itself}}{{$x}}1{{/x}}{{$body}}2{{/body}}{{/itself}}", "1<h1>2</h1>\n"},
    {"{{<short}}{{$body}}1{{/body}}{{$body}}2{{/body}}{{/short}}", "<h1>1</h1>\n"},
    {"{{<short}}ignored {{! so }}\n{{=<% %>=}}<%$body%>1<%/body%><%/short%>", "<h1>1</h1>\n"},
    {"{{>missing}}|\n  {{>missing}}\n{{<missing}}{{$x}}1{{/x}}{{/missing}}.", "|\n."},
    {"{{#title}}{{<short}}{{$body}}{{.}}{{/body}}{{/short}}{{/title}}", "<h1>T &amp; U</h1>\n"},
    {"{{$a}}\n  {{$b}}\n  x\n  {{/b}}\n{{/a}}\n", "  x\n"},
    {"  {{! alone }}  \n  {{=| |=}}\n|who|", "outer"},
    {"x {{! not alone }}\n", "x \n"},
};

START_TEST(white_space)
{
    renders(lines[_i].template, partials, lines[_i].expected);
    clean();
}
END_TEST

START_TEST(a_dot_in_a_partial)
{
    renders("{{#words}}{{>dot}}{{/words}}", (const char *const[]){"dot", "{{who}}{{.}},", NULL}, "outera,outer&lt;,outer,outer,");
    clean();
}
END_TEST

/* Longer than one step can hold, in one file and with the tags behind. */
START_TEST(long_texts)
{
    size_t n = 200000;
    char *template = malloc(n + 20), *expected = malloc(n + 20);
    for (size_t i = 0; i < n; i++)
        template[i] = i % 1000 == 999 ? '\n' : (char)('a' + i % 26);
    memcpy(expected, template, n);
    strcpy(template + n, "{{who}}");
    strcpy(expected + n, "outer");
    renders(template, NULL, expected);
    free(template);
    free(expected);
    clean();
}
END_TEST

/* ---- how the source is asked ---- */

static const struct {
    const char *template;
    const char *said;
} questions[] = {
    {"text", ""},
    {"{{title}}{{who}}", "title who "},
    {"{{#rows}}{{n}}{{/rows}}", "rows + ?n + ?n + "}, /* a row, what it is asked, the next */
    {"{{#rows}}{{title}}{{/rows}}", "rows + ?title title + ?title title + "},
    {"{{#none}}{{/none}}{{^none}}{{who}}{{/none}}", "none + none ! who "},
    {"{{#one}}{{#deep}}{{title}}{{/deep}}{{/one}}", "one ?deep ?title ?title title "},
    {"{{one.deep.n}}", "one ?deep ?n "},
    {"{{one.x.n}}", "one ?x "},
    {"{{#no}}{{title}}{{/no}}{{^title}}{{who}}{{/title}}", "no title "},
    {"{{#title}}{{.}}{{.}}{{/title}}", "title "},
    {"{{.}}{{#.}}{{/.}}", ". . "},
};

START_TEST(question)
{
    struct mustache *t = compile(questions[_i].template, NULL);
    asked.left = -1;
    ck_assert_int_eq(render(t, 1 << 20), MUSTACHE_OK);
    ck_assert_str_eq(asked.said, questions[_i].said);
    mustache_free(t);
    clean();
}
END_TEST

START_TEST(a_source_without_some)
{
    struct mustache_source lean = {&asked, find, next, NULL};
    struct mustache_out out = {&text, &spare, 1000};
    struct mustache *t = compile("{{^none}}a{{/none}}{{^rows}}b{{/rows}}", NULL);
    asked = (struct asked){.root = root, .left = -1};
    ck_assert_int_eq(mustache_render(t, &lean, &out), MUSTACHE_OK);
    ck_assert_str_eq(asked.said, "none + rows + ");
    ck_assert_uint_eq(text.len, 1);
    mustache_free(t);
    clean();
}
END_TEST

/* Whichever call of the source fails, rendering ends there. */
START_TEST(a_source_that_fails)
{
    struct mustache *t = compile("{{title}}{{#rows}}{{n}}{{one.deep.n}}{{/rows}}{{^none}}{{who}}{{/none}}"
                                 "{{#words}}{{.}}{{/words}}{{#x}}{{/x}}", NULL);
    int calls = 0;
    asked.left = -1;
    ck_assert_int_eq(render(t, 1000), MUSTACHE_OK);
    for (const char *p = asked.said; *p != 0; p++)
        calls += *p == ' ';
    ck_assert_int_eq(calls, 25);
    for (int i = 0; i < calls; i++) {
        asked.left = i;
        ck_assert_int_eq(render(t, 1000), MUSTACHE_FAILED);
        int made = 0;
        for (const char *p = asked.said; *p != 0; p++)
            made += *p == ' ';
        ck_assert_int_eq(made, i + 1);
    }
    mustache_free(t);
    clean();
}
END_TEST

START_TEST(the_answer_is_added)
{
    struct mustache_out out = {&text, &spare, 10};
    struct mustache *t = compile("{{who}}", NULL);
    asked = (struct asked){.root = root, .left = -1};
    ck_assert(buf_add(&text, "head ", 5, 100));
    ck_assert_int_eq(mustache_render(t, &source, &out), MUSTACHE_OK);
    ck_assert_uint_eq(text.len, 10);
    ck_assert_mem_eq(text.data, "head outer", 10);
    ck_assert_int_eq(mustache_render(t, &source, &out), MUSTACHE_TOO_LARGE);
    mustache_free(t);
    clean();
}
END_TEST

/* ---- what is told when compiling ---- */

static char told[1000];

static void tell(void *arg, const struct mustache_place *at, struct str name)
{
    size_t n = strlen(told);
    (void)arg;
    snprintf(told + n, sizeof told - n, "%.*s:%u:%u:%.*s ", (int)at->file.n, at->file.p, at->line, at->column,
             (int)name.n, name.p);
}

static const char *const told_partials[] = {"a", "\n\xc3\xa4 {{x}}{{>b}}{{>missing}}",
                                            "b", "{{^y.z}}{{<lost}}{{/lost}}{{/y.z}}", NULL};

START_TEST(missing_partials_are_told)
{
    struct mustache_input input = {str("{{who}}\n {{>gone}}{{>a}}{{>gone}}"), (void *)told_partials, load, tell, NULL};
    struct mustache_error error;
    struct mustache *t = mustache_compile(&input, &error);
    ck_assert_str_eq(told, ":2:2:gone a:2:14:missing b:1:9:lost ");
    mustache_free(t);
    input.load = NULL;
    told[0] = 0;
    mustache_free(mustache_compile(&input, &error));
    ck_assert_str_eq(told, ":2:2:gone :2:11:a ");
}
END_TEST

START_TEST(names_are_told)
{
    struct mustache_input input = {str("{{who}}{{! no }}{{.}}\n{{#rows}}{{{n}}}{{/rows}}{{$block}}{{&m}}{{/block}}{{>a}}"),
                                   (void *)told_partials, load, NULL, tell};
    struct mustache_error error;
    mustache_free(mustache_compile(&input, &error));
    ck_assert_str_eq(told, ":1:1:who :2:1:rows :2:10:n :2:36:m a:2:3:x b:1:1:y.z ");
}
END_TEST

/* ---- errors ---- */

#define NAME_58 "1234567890123456789012345678901234567890123456789012345678"
#define NAME_60 NAME_58 "90"

static const struct {
    const char *template;
    unsigned line, column;
    const char *error;
} errors[] = {
    {"{{", 1, 1, "a tag without its end: \"}}\" is missing"},
    {"a\n b {{who} }", 2, 4, "a tag without its end: \"}}\" is missing"},
    {"{{{who}}", 1, 1, "a tag without its end: \"}}}\" is missing"},
    {"{{=<% %>}}", 1, 1, "a tag without its end: \"=}}\" is missing"},
    {"{{=<% %>=}}<%{who%>", 1, 12, "a tag without its end: \"}%>\" is missing"},
    {"{{!", 1, 1, "a tag without its end: \"}}\" is missing"},
    {"{{}}", 1, 1, "a tag without a name"},
    {"{{ }}", 1, 1, "a tag without a name"},
    {"{{#}}{{/}}", 1, 1, "a tag without a name"},
    {"{{{}}}", 1, 1, "a tag without a name"},
    {"{{> }}", 1, 1, "a tag without a name"},
    {"{{$}}", 1, 1, "a tag without a name"},
    {"{{/}}", 1, 1, "a tag without a name"},
    {"{{two words}}", 1, 1, "a name has no blanks and no control characters"},
    {"{{#a\nb}}", 1, 1, "a name has no blanks and no control characters"},
    {"{{a\x01}}", 1, 1, "a name has no blanks and no control characters"},
    {"{{>a\x7f}}", 1, 1, "a name has no blanks and no control characters"},
    {"{{who and {{title}}", 1, 1, "a name has no blanks and no control characters"},
    {"{{a..b}}", 1, 1, "dots stand between names: \"a..b\""},
    {"{{.a}}", 1, 1, "dots stand between names: \".a\""},
    {"{{#a.}}{{/a.}}", 1, 1, "dots stand between names: \"a.\""},
    {"{{..}}", 1, 1, "dots stand between names: \"..\""},
    {"x\n{{#rows}}\n\n", 2, 1, "the section \"rows\" has no end"},
    {"{{^rows}}", 1, 1, "the section \"rows\" has no end"},
    {"{{#a}}{{#b}}{{/b}}", 1, 1, "the section \"a\" has no end"},
    {"\xc3\xa4{{<p}}", 1, 2, "the parent \"p\" has no end"},
    {"{{$b}}", 1, 1, "the block \"b\" has no end"},
    {"{{<p}}{{$b}}{{/p}}", 1, 13, "\"p\" ends here, but the block \"b\" of line 1 is open"},
    {"{{/who}}", 1, 1, "\"who\" ends here, but nothing is open"},
    {"\n{{#rows}}\n {{/row}}", 3, 2, "\"row\" ends here, but the section \"rows\" of line 2 is open"},
    {"{{#a}}{{/ a.b }}", 1, 7, "\"a.b\" ends here, but the section \"a\" of line 1 is open"},
    {"{{#a}}{{/" NAME_60 "\xc3\xa4}}", 1, 7, "\"" NAME_60 "\" ends here, but the section \"a\" of line 1 is open"},
    {"{{#a}}{{/" NAME_58 "\xc3\xa4\xc3\xa4}}", 1, 7, "\"" NAME_58 "\xc3\xa4\""
     " ends here, but the section \"a\" of line 1 is open"},
    {"{{#a}}{{/1" NAME_58 "\xc3\xa4\xc3\xa4}}", 1, 7, "\"1" NAME_58 "\""
     " ends here, but the section \"a\" of line 1 is open"},
    {"{{=}}=}}", 1, 1, "new delimiters are two words without \"=\", as in {{=<% %>=}}"},
    {"{{==}}", 1, 1, "new delimiters are two words without \"=\", as in {{=<% %>=}}"},
    {"{{=<%=}}", 1, 1, "new delimiters are two words without \"=\", as in {{=<% %>=}}"},
    {"{{=< % >=}}", 1, 1, "new delimiters are two words without \"=\", as in {{=<% %>=}}"},
    {"{{=<= =>=}}", 1, 1, "new delimiters are two words without \"=\", as in {{=<% %>=}}"},
    {"{{=12345678901234567 %>=}}", 1, 1, "new delimiters are two words without \"=\", as in {{=<% %>=}}"},
    {"{{<p}}\n{{#x}}", 2, 1, "in a parent only blocks have an effect, {{$name}}\u2026{{/name}}"},
    {"{{<p}}{{who}}", 1, 7, "in a parent only blocks have an effect, {{$name}}\u2026{{/name}}"},
    {"{{<p}}{{>who}}", 1, 7, "in a parent only blocks have an effect, {{$name}}\u2026{{/name}}"},
    {"{{>*dynamic}}", 1, 1, "names of partials are fixed: \"*\" is not supported"},
    {"a\n\xff\n", 2, 1, "a line that is not UTF-8"},
};

START_TEST(error)
{
    struct mustache_input input = {.text = str(errors[_i].template)};
    struct mustache_error e;
    ck_assert_ptr_null(mustache_compile(&input, &e));
    ck_assert_str_eq(e.text, errors[_i].error);
    ck_assert_str_eq(e.file, "");
    ck_assert_uint_eq(e.line, errors[_i].line);
    ck_assert_uint_eq(e.column, errors[_i].column);
}
END_TEST

START_TEST(an_error_in_a_partial)
{
    const char *const broken[] = {"one", "{{>two}}", "two", "\n{{#x}}", NULL};
    struct mustache_input input = {.text = str("{{>one}}"), .arg = (void *)broken, .load = load};
    struct mustache_error e;
    ck_assert_ptr_null(mustache_compile(&input, &e));
    ck_assert_str_eq(e.file, "two");
    ck_assert_uint_eq(e.line, 2);
    ck_assert_str_eq(e.text, "the section \"x\" has no end");
}
END_TEST

/* ---- caps ---- */

/* n times a text, from malloc. */
static char *times(const char *piece, size_t n)
{
    size_t len = strlen(piece);
    char *all = malloc(n * len + 1);
    for (size_t i = 0; i < n; i++)
        memcpy(all + i * len, piece, len);
    all[n * len] = 0;
    return all;
}

/* Compiles a text from malloc and frees it. NULL: no error. */
static void compiles(char *template, const char *why)
{
    struct mustache_input input = {.text = str(template)};
    struct mustache_error e;
    struct mustache *t = mustache_compile(&input, &e);
    if (why == NULL)
        ck_assert_msg(t != NULL, "%u:%u: %s", e.line, e.column, e.text);
    else
        ck_assert(t == NULL);
    if (why != NULL)
        ck_assert_str_eq(e.text, why);
    mustache_free(t);
    free(template);
}

static char *nested(size_t n)
{
    char *open = times("{{#x}}", n), *close = times("{{/x}}", n), *all = malloc(12 * n + 1);
    sprintf(all, "%s%s", open, close);
    free(open);
    free(close);
    return all;
}

static char *named(size_t n)
{
    char *name = times("n", n), *all = malloc(n + 5);
    sprintf(all, "{{%s}}", name);
    free(name);
    return all;
}

START_TEST(caps_of_compiling)
{
    compiles(times("x", 262144), NULL);
    compiles(times("x", 262145), "more than 262144 bytes");
    compiles(times("{{x}}", 10000), NULL);
    compiles(times("{{x}}", 10001), "more than 10000 tags");
    compiles(times("{{!}}", 10001), "more than 10000 tags");
    compiles(nested(64), NULL);
    compiles(nested(65), "more than 64 sections, parents and blocks in one another");
    compiles(named(255), NULL);
    compiles(named(256), "a name of more than 255 bytes");
}
END_TEST

static char *many_partials(int n)
{
    char *all = malloc((size_t)n * 16), *p = all;
    for (int i = 0; i < n; i++)
        p += sprintf(p, "{{>p%d}}{{>p%d}}", i, i / 2);
    return all;
}

START_TEST(cap_of_partials)
{
    compiles(many_partials(64), NULL);
    compiles(many_partials(65), "more than 64 partials");
}
END_TEST

/* Blanks longer than a step can hold are cut, not more. */
START_TEST(long_indentation)
{
    char *blanks = times(" ", 70000), *template = malloc(80000);
    sprintf(template, "%s{{>p}}\n%s{{$b}}x{{/b}}", blanks, "");
    struct mustache *t = compile(template, (const char *const[]){"p", "a\nb\n", NULL});
    asked.left = -1;
    ck_assert_int_eq(render(t, 1 << 20), MUSTACHE_OK);
    ck_assert_uint_eq(text.len - 1, 2 * 65535 + 5);
    mustache_free(t);
    free(blanks);
    free(template);
    clean();
}
END_TEST

static enum mustache_result result_of(const char *template, const char *const *files, size_t max_bytes)
{
    struct mustache *t = compile(template, files);
    asked.left = -1;
    enum mustache_result result = render(t, max_bytes);
    mustache_free(t);
    return result;
}

START_TEST(no_more_than_max_bytes)
{
    for (size_t max = 0; max <= 9; max++) {
        enum mustache_result expected = max < 9 ? MUSTACHE_TOO_LARGE : MUSTACHE_OK;
        ck_assert_int_eq(result_of("{{title}}", NULL, max), expected);
        ck_assert_int_eq(result_of("{{{title}}}1234", NULL, max), expected);
        ck_assert_int_eq(result_of(" {{>p}}\n2345678", (const char *const[]){"p", "1", NULL}, max), expected);
    }
    ck_assert_int_eq(result_of("{{#title}}{{#no}}{{.}}{{/no}}{{/title}}", NULL, 4), MUSTACHE_TOO_LARGE); /* the spare text */
    ck_assert_int_eq(result_of("{{#endless}}x{{/endless}}", NULL, 1000), MUSTACHE_TOO_LARGE);
    ck_assert_uint_le(asked.items, 1001);
    clean();
}
END_TEST

START_TEST(partials_without_end)
{
    const char *const files[] = {"me", "{{>me}}", "we", "{{>us}}", "us", "{{<we}}{{$x}}{{/x}}{{/we}}",
                                 "block", "{{<hole}}{{$x}}{{>block}}{{/x}}{{/hole}}", "hole", "{{$x}}{{/x}}", NULL};
    ck_assert_int_eq(result_of("{{>me}}", files, 1000), MUSTACHE_TOO_DEEP);
    ck_assert_int_eq(result_of("{{>we}}", files, 1000), MUSTACHE_TOO_DEEP);
    ck_assert_int_eq(result_of("{{>block}}", files, 1000), MUSTACHE_TOO_DEEP);
    clean();
}
END_TEST

/* p0 includes p1, … */
static enum mustache_result chain(int n, const char *before, const char *after)
{
    static char names[40][8], texts[40][2000];
    const char *files[90] = {NULL};
    for (int i = 0; i < n; i++) {
        sprintf(names[i], "p%d", i);
        sprintf(texts[i], i + 1 < n ? "%s{{>p%d}}%s" : "x", before, i + 1, after);
        files[2 * i] = names[i];
        files[2 * i + 1] = texts[i];
    }
    return result_of("{{>p0}}", files, 1000);
}

START_TEST(depth)
{
    ck_assert_int_eq(chain(32, "", ""), MUSTACHE_OK);
    ck_assert_str_eq((char *)text.data, "x");
    ck_assert_int_eq(chain(33, "", ""), MUSTACHE_TOO_DEEP);
    char *open = times("{{^no}}", 20), *close = times("{{/no}}", 20);
    ck_assert_int_eq(chain(9, open, close), MUSTACHE_OK); /* 8 times 20, and 10 */
    ck_assert_int_eq(chain(11, open, close), MUSTACHE_TOO_DEEP);
    free(open);
    free(close);
    clean();
}
END_TEST

START_TEST(steps)
{
    ck_assert_int_eq(result_of("{{#endless}}{{/endless}}", NULL, 1000), MUSTACHE_TOO_LONG);
    ck_assert_uint_le(asked.items, MUSTACHE_STEPS_MAX);
    static char names[25][8], texts[25][32];
    const char *files[60] = {NULL};
    for (int i = 0; i < 25; i++) { /* 2^25 times nothing */
        sprintf(names[i], "p%d", i);
        sprintf(texts[i], "{{>p%d}}{{>p%d}}", i + 1, i + 1);
        files[2 * i] = names[i];
        files[2 * i + 1] = texts[i];
    }
    ck_assert_int_eq(result_of("{{>p0}}", files, 1000), MUSTACHE_TOO_LONG);
    clean();
}
END_TEST

/* Looking for what fills a block counts, too. */
START_TEST(steps_of_many_blocks)
{
    char *fills = times("{{$x}}{{/x}}", 3000), *blocks = times("{{$y}}{{/y}}", 1600), *template = malloc(80000);
    sprintf(template, "{{<p}}%s{{/p}}", fills);
    ck_assert_int_eq(result_of(template, (const char *const[]){"p", blocks, NULL}, 1000), MUSTACHE_TOO_LONG);
    free(fills);
    free(blocks);
    free(template);
    clean();
}
END_TEST

START_TEST(each_result_says_something)
{
    for (int i = MUSTACHE_OK; i <= MUSTACHE_NO_MEMORY; i++)
        ck_assert_str_ne(mustache_says((enum mustache_result)i), "unknown");
    ck_assert_str_eq(mustache_says(MUSTACHE_TOO_LARGE), "the page would be too large");
}
END_TEST

/* ---- one template, several threads; memory ---- */

static const char page[] =
    "<!doctype html>\n<table>\n{{#rows}}\n  <tr><td class=\"n\">{{n}}</td><td>{{who}}</td><td>{{title}}</td></tr>\n{{/rows}}\n"
    "</table>\n"
    "{{^rows}}\n<p>Nothing yet.</p>\n{{/rows}}\n<p>{{#title}}{{.}}{{/title}}</p>\n";

static void *render_often(void *arg)
{
    static _Thread_local struct asked mine;
    struct mustache_source own = {&mine, find, next, some};
    struct buf into = {0}, kept = {0};
    struct mustache_out out = {&into, &kept, 10000};
    mine = (struct asked){.root = root, .left = -1};
    uintptr_t good = 0;
    for (int i = 0; i < 200; i++) {
        into.len = 0;
        mine.said[0] = 0;
        good += mustache_render(arg, &own, &out) == MUSTACHE_OK && into.len == 171;
    }
    buf_free(&into);
    buf_free(&kept);
    return (void *)good;
}

START_TEST(threads)
{
    struct mustache *t = compile(page, NULL);
    pthread_t thread[4];
    void *good;
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, render_often, t), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], &good);
        ck_assert_uint_eq((uintptr_t)good, 200);
    }
    mustache_free(t);
}
END_TEST

START_TEST(compiled_is_small)
{
    struct mustache *t = compile(page, NULL);
    ck_assert_uint_le(mustache_bytes(t), 2 * strlen(page));
    mustache_free(t);
    char *dense = times("<td>{{player}}</td>", 1000);
    t = compile(dense, NULL);
    ck_assert_uint_le(mustache_bytes(t), 2 * strlen(dense));
    mustache_free(t);
    free(dense);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("mustache");
    TCase *t = run_case(s, "rendering");
    tcase_add_loop_test(t, value, 0, COUNT(values));
    tcase_add_loop_test(t, white_space, 0, COUNT(lines));
    tcase_add_test(t, a_dot_in_a_partial);
    tcase_add_test(t, long_texts);
    tcase_add_loop_test(t, question, 0, COUNT(questions));
    tcase_add_test(t, a_source_without_some);
    tcase_add_test(t, a_source_that_fails);
    tcase_add_test(t, the_answer_is_added);
    tcase_add_test(t, threads);
    t = run_case(s, "compiling");
    tcase_add_test(t, missing_partials_are_told);
    tcase_add_test(t, names_are_told);
    tcase_add_loop_test(t, error, 0, COUNT(errors));
    tcase_add_test(t, an_error_in_a_partial);
    tcase_add_test(t, compiled_is_small);
    t = run_case(s, "caps");
    tcase_add_test(t, caps_of_compiling);
    tcase_add_test(t, cap_of_partials);
    tcase_add_test(t, long_indentation);
    tcase_add_test(t, no_more_than_max_bytes);
    tcase_add_test(t, partials_without_end);
    tcase_add_test(t, depth);
    tcase_add_test(t, steps);
    tcase_add_test(t, steps_of_many_blocks);
    tcase_add_test(t, each_result_says_something);
    return run_suite(s);
}
