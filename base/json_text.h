/*
 * base/json_text.h - texts from anywhere as JSON, which is UTF-8
 */
#ifndef BASE_JSON_TEXT_H
#define BASE_JSON_TEXT_H

#include <jansson.h>

/* Of each byte that is no part of a character there is a question mark. */
json_t *json_of_text(const char *text);

#endif
