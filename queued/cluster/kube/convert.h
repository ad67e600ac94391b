/* queued/cluster/kube/convert.h - our objects in the API version that the server has.
 *
 * We write resource.k8s.io objects as v1. v1beta2 has the same form; in v1beta1 a request has no `exactly` around its
 * fields. Objects of other groups are sent as they are. Pure. */
#ifndef QUEUED_KUBE_CONVERT_H
#define QUEUED_KUBE_CONVERT_H

#include <jansson.h>

/* `object` in `version` ("v1beta1") of resource.k8s.io; new reference. What is in that version already is given back
 * as it is. */
json_t *convert_resource(const json_t *object, const char *version);

#endif
