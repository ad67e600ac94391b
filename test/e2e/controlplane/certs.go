package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

type ca struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func keyPEM(k *ecdsa.PrivateKey) []byte {
	b, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: b})
}

func serial() *big.Int {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		panic(err)
	}
	return n
}

func newCA(cn string) (*ca, error) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: cn},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(10 * 365 * 24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, k.Public(), k)
	if err != nil {
		return nil, err
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &ca{c, k, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, nil
}

// issue writes DIR/NAME.crt and DIR/NAME.key.
func (a *ca) issue(dir, name, cn string, orgs []string, server bool) error {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	t := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: cn, Organization: orgs},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(10 * 365 * 24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if server {
		t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		t.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
		t.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 1)}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, k.Public(), a.key)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, name+".crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".key"), keyPEM(k), 0o600)
}

// writePKI makes all keys and certificates once.
func writePKI(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "done")); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	root, err := newCA("e2e-ca")
	if err != nil {
		return err
	}
	front, err := newCA("e2e-front-proxy-ca")
	if err != nil {
		return err
	}
	sa, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	pub, err := x509.MarshalPKIXPublicKey(sa.Public())
	if err != nil {
		return err
	}
	for n, b := range map[string][]byte{
		"ca.crt": root.pem, "ca.key": keyPEM(root.key), "front-ca.crt": front.pem,
		"sa.key": keyPEM(sa), "sa.pub": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pub}),
	} {
		if err := os.WriteFile(filepath.Join(dir, n), b, 0o600); err != nil {
			return err
		}
	}
	for _, c := range []struct {
		a        *ca
		name, cn string
		orgs     []string
		server   bool
	}{
		{root, "apiserver", "kube-apiserver", nil, true},
		{root, "proxy", "proxy", nil, true},
		{root, "kubelet", "kubelet", nil, true},
		{root, "manager-server", "kube-controller-manager", nil, true},
		{root, "scheduler-server", "kube-scheduler", nil, true},
		{front, "front-proxy", "front-proxy-client", nil, false},
		{root, "admin", "admin", []string{"system:masters"}, false},
		{root, "scheduler", "system:kube-scheduler", nil, false},
		{root, "agent", "agent", []string{"system:masters"}, false},
		{root, "manager", "system:kube-controller-manager", nil, false},
	} {
		if err := c.a.issue(dir, c.name, c.cn, c.orgs, c.server); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "done"), nil, 0o600)
}

func writeKubeconfig(path, server, pki, user string) error {
	s := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: kcp
clusters: [{name: kcp, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: %s, user: {client-certificate: %q, client-key: %q}}]
contexts: [{name: kcp, context: {cluster: kcp, user: %s}}]
`, server, pki+"/ca.crt", user, pki+"/"+user+".crt", pki+"/"+user+".key", user)
	return os.WriteFile(path, []byte(s), 0o600)
}
