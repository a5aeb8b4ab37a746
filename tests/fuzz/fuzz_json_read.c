/* handlers/json_read over any bytes stays inside of them; over JSON its slices are JSON, and its strings say UTF-8. */
#include "fcgi/path.h"
#include "handlers/json_check.h"
#include "handlers/json_read.h"
#include "tests/fuzz/must.h"

static bool valid;

static void look_at(struct str value, int depth);

static void say(struct str string)
{
    struct buf out = {0};
    if (json_text(string, &out, 1 << 20) == JSON_TEXT_OK && valid) {
        MUST(utf8_ok((const char *)out.data, out.len));
        if (out.len < 64 && (out.len == 0 || memchr(out.data, 0, out.len) == NULL)) {
            char text[64] = "";
            if (out.len > 0)
                memcpy(text, out.data, out.len);
            MUST(json_says(string, text));
        }
    }
    buf_free(&out);
}

static void look_inside(struct str value, int depth)
{
    struct json_walk w = json_enter(value);
    struct str name, inner;
    if (json_kind(value) == JSON_OBJECT) {
        while (json_member(&w, &name, &inner)) {
            MUST(!valid || json_kind(name) == JSON_STRING);
            if (name.n >= 2)
                say(name);
            look_at(inner, depth);
            if (!valid)
                break;
        }
    } else {
        while (json_item(&w, &inner)) {
            look_at(inner, depth);
            if (!valid)
                break;
        }
    }
}

static void look_at(struct str value, int depth)
{
    MUST(!valid || json_check_all(value.p, value.n, NULL));
    if (depth == 0)
        return;
    if (json_kind(value) == JSON_STRING && value.n >= 2)
        say(value);
    else if (json_kind(value) <= JSON_ARRAY)
        look_inside(value, depth - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    valid = json_check_all(data, size, NULL);
    look_at(json_value((struct str){(const char *)data, size}), 5);
    return 0;
}
