/* test/cluster/kube/pki.h - certificates of a test: an authority, and what it signs. PEM text, to free(). */
#ifndef QUEUED_TEST_KUBE_PKI_H
#define QUEUED_TEST_KUBE_PKI_H

struct pki;

struct pki *pki_new(void);
void pki_free(struct pki *pki);
/* Of the authority; borrowed. */
const char *pki_ca(const struct pki *pki);

/* `names` as OpenSSL writes alternative names ("IP:127.0.0.1,DNS:api.test"), or NULL. Valid from now + from_s to now +
 * to_s. */
void pki_issue(const struct pki *pki, const char *common_name, const char *names, long from_s, long to_s,
               char **certificate, char **key);

#endif
