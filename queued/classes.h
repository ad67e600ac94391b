/* queued/classes.h - the device classes that documents of a submission name, with where they name them. */
#ifndef QUEUED_CLASSES_H
#define QUEUED_CLASSES_H

#include <stddef.h>

#include <jansson.h>

/* Call `each` for every deviceClassName in the templates and claims of a submission: the document's index, the field's
 * path
 * ("spec.claimTemplates[0].spec.devices.requests[1].exactly.deviceClassName") and the name. Documents of other kinds
 * and shapes are passed over. */
void documents_each_class(const json_t *documents,
                          void (*each)(void *ctx, size_t document, const char *field, const char *name), void *ctx);

#endif
