#include "db/merge.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "db/doc.h"
#include "db/valid.h"

enum { NODES_FIRST = 64, ROOT = 0 };

/* A member of the patch, at any depth below objects; node ROOT is the patch itself. */
struct node {
    const char *name; /* with its quotes */
    const char *value;
    size_t name_len, value_len;
    uint32_t parent;
    uint32_t first, next; /* member of this one, and of its parent; 0: none */
    bool object;
    bool null;
    bool done; /* written, or not to be: another of the same name is behind it */
};

struct merging {
    struct node *nodes;
    uint32_t count, room;
    uint32_t *order; /* nodes by parent, then by name */
    bool no_memory;
    const char *p, *end; /* what is left of the text being read */
    char *out;
    size_t used, most;
};

/* ---- reading, of text that is JSON ----------------------------------------------------------- */

static void skip_blank(struct merging *g)
{
    while (g->p < g->end && (*g->p == ' ' || *g->p == '\n' || *g->p == '\r' || *g->p == '\t'))
        g->p++;
}

static void skip_string(struct merging *g)
{
    for (g->p++; g->p < g->end && *g->p != '"'; g->p++)
        if (*g->p == '\\' && g->p + 1 < g->end)
            g->p++;
    if (g->p < g->end)
        g->p++;
}

static void skip_nested(struct merging *g)
{
    size_t depth = 0;
    while (g->p < g->end) {
        char c = *g->p;
        if (c == '"') {
            skip_string(g);
            continue;
        }
        g->p++;
        if (c == '{' || c == '[')
            depth++;
        else if ((c == '}' || c == ']') && --depth == 0)
            return;
    }
}

static void skip_value(struct merging *g)
{
    if (g->p == g->end)
        return;
    if (*g->p == '"')
        skip_string(g);
    else if (*g->p == '{' || *g->p == '[')
        skip_nested(g);
    else
        while (g->p < g->end && strchr(",]} \n\r\t", *g->p) == NULL)
            g->p++;
}

/* Takes c, if it comes next, and the white space behind it. */
static bool take(struct merging *g, char c)
{
    if (g->p == g->end || *g->p != c)
        return false;
    g->p++;
    skip_blank(g);
    return true;
}

/* ---- names, as what they say ----------------------------------------------------------------- */

static unsigned hex4(const char *p)
{
    unsigned v = 0;
    for (int i = 0; i < 4; i++) {
        unsigned c = (unsigned char)p[i];
        v = v << 4 | ((c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10) & 15);
    }
    return v;
}

/* Bytes of a name as they come, escapes resolved; a half of a surrogate pair is three bytes. */
struct speech {
    const char *p, *end;
    unsigned char bytes[4];
    unsigned left, at;
};

static void say_code(struct speech *s, unsigned c)
{
    static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    unsigned n = c >= 0x10000 ? 4 : c >= 0x800 ? 3 : c >= 0x80 ? 2 : 1;
    s->left = n;
    s->at = 0;
    for (unsigned i = n - 1; i > 0; i--) {
        s->bytes[i] = (unsigned char)(0x80 | (c & 0x3f));
        c >>= 6;
    }
    s->bytes[0] = (unsigned char)(first[n] | c);
}

/* p stands behind the backslash. */
static void say_escape(struct speech *s)
{
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    char c = *s->p++;
    const char *at = c != 0 ? strchr(from, c) : NULL;
    if (c != 'u' || s->end - s->p < 4) {
        say_code(s, (unsigned char)(at != NULL ? to[at - from] : c));
        return;
    }
    unsigned code = hex4(s->p);
    s->p += 4;
    if (code >= 0xd800 && code < 0xdc00 && s->end - s->p >= 6 && s->p[0] == '\\' &&
        s->p[1] == 'u') {
        unsigned low = hex4(s->p + 2);
        if (low >= 0xdc00 && low <= 0xdfff) {
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            s->p += 6;
        }
    }
    say_code(s, code);
}

/* The next byte, -1 at the end. */
static int say(struct speech *s)
{
    if (s->left == 0 && s->p == s->end)
        return -1;
    if (s->left == 0 && (*s->p != '\\' || s->end - s->p < 2))
        return (unsigned char)*s->p++;
    if (s->left == 0) {
        s->p++;
        say_escape(s);
    }
    s->left--;
    return s->bytes[s->at++];
}

/* As what they say, escaped or not. Names without an escape, nearly all there are, say what they
 * are. */
static int compare_names(const char *a, size_t a_len, const char *b, size_t b_len)
{
    if (memchr(a, '\\', a_len) == NULL && memchr(b, '\\', b_len) == NULL) {
        size_t n = (a_len < b_len ? a_len : b_len) - 2;
        int order = memcmp(a + 1, b + 1, n);
        return order != 0 ? order : (a_len > b_len) - (a_len < b_len);
    }
    size_t most = (a_len < b_len ? a_len : b_len) - 1, same = 1;
    while (same < most && a[same] == b[same] && a[same] != '\\')
        same++;
    struct speech x = {.p = a + same, .end = a + a_len - 1};
    struct speech y = {.p = b + same, .end = b + b_len - 1};
    int c, d;
    do {
        c = say(&x);
        d = say(&y);
    } while (c == d && c >= 0);
    return (c > d) - (c < d);
}

/* ---- the patch ------------------------------------------------------------------------------- */

static uint32_t add_node(struct merging *g, uint32_t parent)
{
    if (g->count == g->room) {
        uint32_t room = g->room > 0 ? g->room * 2 : NODES_FIRST;
        struct node *more = realloc(g->nodes, room * sizeof *more);
        if (more == NULL) {
            g->no_memory = true;
            return ROOT;
        }
        g->nodes = more;
        g->room = room;
    }
    g->nodes[g->count] = (struct node){.parent = parent};
    return g->count++;
}

/* Reads the value that comes next, of that node, with all that is below it in objects. */
static void read_node(struct merging *g, uint32_t n)
{
    uint32_t last = 0;
    g->nodes[n].value = g->p;
    g->nodes[n].null = g->p < g->end && *g->p == 'n';
    g->nodes[n].object = take(g, '{');
    if (!g->nodes[n].object)
        skip_value(g);
    while (g->nodes[n].object && !g->no_memory && g->p < g->end && *g->p != '}') {
        uint32_t member = add_node(g, n);
        if (last != 0)
            g->nodes[last].next = member;
        else
            g->nodes[n].first = member;
        last = member;
        g->nodes[member].name = g->p;
        skip_string(g);
        g->nodes[member].name_len = (size_t)(g->p - g->nodes[member].name);
        skip_blank(g);
        (void)take(g, ':');
        read_node(g, member);
        skip_blank(g);
        (void)take(g, ',');
    }
    if (g->nodes[n].object && g->p < g->end)
        g->p++;
    g->nodes[n].value_len = (size_t)(g->p - g->nodes[n].value);
}

static int compare_nodes(const void *a, const void *b, void *nodes)
{
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const struct node *x = (const struct node *)nodes + i, *y = (const struct node *)nodes + j;
    if (x->parent != y->parent)
        return x->parent < y->parent ? -1 : 1;
    int names = compare_names(x->name, x->name_len, y->name, y->name_len);
    return names != 0 ? names : (i > j) - (i < j);
}

/* Brings the members in order of their names; of each name, the last one counts. */
static void sort_nodes(struct merging *g)
{
    uint32_t n = g->count - 1;
    g->order = malloc((n + 1) * sizeof *g->order);
    if (g->order == NULL) {
        g->no_memory = true;
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        g->order[i] = i + 1;
    qsort_r(g->order, n, sizeof *g->order, compare_nodes, g->nodes);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct node *x = &g->nodes[g->order[i]];
        const struct node *y = i + 1 < n ? &g->nodes[g->order[i + 1]] : NULL;
        x->done = y != NULL && x->parent == y->parent &&
                  compare_names(x->name, x->name_len, y->name, y->name_len) == 0;
        if (!x->done)
            g->order[kept++] = g->order[i];
    }
    g->room = kept; /* no node is added any more: from now on the length of order */
}

/* The member of the patch below parent with that name; ROOT when there is none. */
static uint32_t find_node(const struct merging *g, uint32_t parent, const char *name, size_t len)
{
    uint32_t low = 0, high = g->room;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct node *x = &g->nodes[g->order[middle]];
        int order = parent != x->parent ? (parent < x->parent ? -1 : 1)
                                        : compare_names(name, len, x->name, x->name_len);
        if (order == 0)
            return g->order[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return ROOT;
}

/* ---- the result ------------------------------------------------------------------------------ */

static void put(struct merging *g, const char *p, size_t n)
{
    assert(n <= g->most - g->used); /* each byte comes from one of the two, but for a few */
    memcpy(g->out + g->used, p, n);
    g->used += n;
}

static void put_name(struct merging *g, const char *name, size_t n)
{
    if (g->out[g->used - 1] != '{')
        put(g, ",", 1);
    put(g, name, n);
    put(g, ":", 1);
}

/* What a member of the patch is where the document has nothing to merge it into: itself, but
 * without the nulls of its objects. */
static void put_new(struct merging *g, uint32_t n);

/* The members of a patch's object that the document does not have. */
static void put_rest(struct merging *g, uint32_t n)
{
    for (uint32_t i = g->nodes[n].first; i != 0; i = g->nodes[i].next) {
        if (g->nodes[i].done || g->nodes[i].null)
            continue;
        put_name(g, g->nodes[i].name, g->nodes[i].name_len);
        put_new(g, i);
    }
}

static void put_new(struct merging *g, uint32_t n)
{
    if (!g->nodes[n].object) {
        put(g, g->nodes[n].value, g->nodes[n].value_len);
        return;
    }
    put(g, "{", 1);
    put_rest(g, n);
    put(g, "}", 1);
}

static void merge_value(struct merging *g, uint32_t n);

/* Reads a member of the document, whose object is merged with node n, and writes what becomes of
 * it. */
static void merge_member(struct merging *g, uint32_t n)
{
    const char *name = g->p;
    skip_string(g);
    size_t name_len = (size_t)(g->p - name);
    skip_blank(g);
    (void)take(g, ':');
    uint32_t found = find_node(g, n, name, name_len);
    const char *value = g->p;
    if (found == ROOT) {
        skip_value(g);
        put_name(g, name, name_len);
        put(g, value, (size_t)(g->p - value));
    } else if (g->nodes[found].null || g->nodes[found].done) {
        skip_value(g);
    } else {
        g->nodes[found].done = true;
        put_name(g, name, name_len);
        merge_value(g, found);
    }
    skip_blank(g);
    (void)take(g, ',');
}

/* Reads a value of the document and writes what node n of the patch makes of it. */
static void merge_value(struct merging *g, uint32_t n)
{
    if (!g->nodes[n].object || g->p == g->end || *g->p != '{') {
        skip_value(g);
        put_new(g, n);
        return;
    }
    (void)take(g, '{');
    put(g, "{", 1);
    while (g->p < g->end && *g->p != '}')
        merge_member(g, n);
    if (g->p < g->end)
        g->p++;
    put_rest(g, n);
    put(g, "}", 1);
}

static enum db_result merge(struct db_merge *m)
{
    struct merging g = {.p = m->patch, .end = m->patch + m->patch_len};
    skip_blank(&g);
    add_node(&g, ROOT);
    if (!g.no_memory)
        read_node(&g, ROOT);
    if (!g.no_memory)
        sort_nodes(&g);
    g.most = m->target_len + m->patch_len + 8;
    m->out = g.no_memory ? NULL : malloc(m->head + g.most);
    if (m->out != NULL) {
        g.out = (char *)m->out + m->head;
        g.p = m->target;
        g.end = m->target + m->target_len;
        skip_blank(&g);
        merge_value(&g, ROOT);
        m->out_len = m->head + g.used;
    }
    free(g.nodes);
    free(g.order);
    return m->out != NULL ? DB_OK : DB_NO_MEMORY;
}

enum db_result db_merge(struct db_conn *c, struct db_merge *m)
{
    bool target = false, patch = false;
    m->out = NULL;
    m->out_len = 0;
    if (m->target_len > DB_PATCH_BYTES_MAX || m->patch_len > DB_PATCH_BYTES_MAX)
        return DB_TOO_LARGE;
    enum db_result result = db_valid_json(c, m->target, m->target_len, &target);
    if (result == DB_OK)
        result = db_valid_json(c, m->patch, m->patch_len, &patch);
    if (result != DB_OK)
        return result;
    return !patch ? DB_INVALID : !target ? DB_CONFLICT : merge(m);
}
