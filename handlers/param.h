/* Query parameters: what several routes take in the same way. */
#ifndef HANJI_HANDLERS_PARAM_H
#define HANJI_HANDLERS_PARAM_H

#include "fcgi/loop.h"

/* Answers 400, naming the parameter: "The query parameter NAME RULE." */
void param_refuse(struct call *c, const char *name, const char *rule);

/* A whole number of decimal digits, at most max. */
bool param_digits(struct str text, uint64_t max, uint64_t *value)
    __attribute__((warn_unused_result));

/* The number that a parameter gives, from 0 to max; *value stays as it is without one. Answers 400
 * and returns false for anything else, and when it is there more than once. */
bool param_number(struct call *c, const char *name, unsigned max, unsigned *value)
    __attribute__((warn_unused_result));

#endif
