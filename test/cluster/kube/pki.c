#include "test/cluster/kube/pki.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"

#include "allocator/base/banned.h"

struct pki {
    EVP_PKEY *key;
    X509 *certificate;
    char *pem;
};

static char *text_of(BIO *bio)
{
    char *bytes;
    long n = BIO_get_mem_data(bio, &bytes);
    char *text = mem_strndup(bytes, (size_t)n);

    BIO_free(bio);
    return text;
}

static char *pem_of(X509 *certificate)
{
    BIO *bio = BIO_new(BIO_s_mem());

    INVARIANT(PEM_write_bio_X509(bio, certificate) == 1);
    return text_of(bio);
}

static void extend(X509 *certificate, X509 *issuer, int what, const char *value)
{
    X509V3_CTX ctx;
    X509_EXTENSION *extension;

    X509V3_set_ctx(&ctx, issuer, certificate, NULL, NULL, 0);
    extension = X509V3_EXT_conf_nid(NULL, &ctx, what, value);
    INVARIANT(extension);
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
}

static X509 *sign(EVP_PKEY *key, const char *common_name, const char *names, long from_s, long to_s, X509 *issuer,
                  EVP_PKEY *issuer_key, long serial)
{
    X509 *certificate = X509_new();
    X509_NAME *name = X509_get_subject_name(certificate);

    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial);
    X509_gmtime_adj(X509_getm_notBefore(certificate), from_s);
    X509_gmtime_adj(X509_getm_notAfter(certificate), to_s);
    X509_set_pubkey(certificate, key);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)common_name, -1, -1, 0);
    X509_set_issuer_name(certificate, issuer ? X509_get_subject_name(issuer) : name);
    extend(certificate, issuer ? issuer : certificate, NID_basic_constraints,
           issuer ? "critical,CA:FALSE" : "critical,CA:TRUE");
    if (names)
        extend(certificate, issuer, NID_subject_alt_name, names);
    INVARIANT(X509_sign(certificate, issuer_key ? issuer_key : key, EVP_sha256()) > 0);
    return certificate;
}

struct pki *pki_new(void)
{
    struct pki *pki = mem_new(struct pki);

    pki->key = EVP_EC_gen("P-256");
    pki->certificate = sign(pki->key, "test authority", NULL, -3600, 3600, NULL, NULL, 1);
    pki->pem = pem_of(pki->certificate);
    return pki;
}

void pki_free(struct pki *pki)
{
    EVP_PKEY_free(pki->key);
    X509_free(pki->certificate);
    free(pki->pem);
    free(pki);
}

const char *pki_ca(const struct pki *pki)
{
    return pki->pem;
}

void pki_issue(const struct pki *pki, const char *common_name, const char *names, long from_s, long to_s,
               char **certificate, char **key)
{
    EVP_PKEY *pair = EVP_EC_gen("P-256");
    X509 *made = sign(pair, common_name, names, from_s, to_s, pki->certificate, pki->key, random() & 0xffffff);
    BIO *bio = BIO_new(BIO_s_mem());

    *certificate = pem_of(made);
    INVARIANT(PEM_write_bio_PrivateKey(bio, pair, NULL, NULL, 0, NULL, NULL) == 1);
    *key = text_of(bio);
    X509_free(made);
    EVP_PKEY_free(pair);
}
