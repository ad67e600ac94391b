package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// Lines that the output of every container has.
const logLines = 30

func logLine(ns, pod, container string, i int) string {
	return fmt.Sprintf("%s/%s %s line %d", ns, pod, container, i)
}

// serveKubelet answers what the API server asks the kubelets for: the output of containers. All fake nodes share it.
func serveKubelet(certificate, key string) (*http.Server, int32, error) {
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return nil, 0, err
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		return nil, 0, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{ns}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		first := 0
		if tail, err := strconv.Atoi(r.URL.Query().Get("tailLines")); err == nil && tail < logLines {
			first = logLines - tail
		}
		var text strings.Builder
		for i := first; i < logLines; i++ {
			text.WriteString(logLine(r.PathValue("ns"), r.PathValue("pod"), r.PathValue("container"), i) + "\n")
		}
		_, _ = w.Write([]byte(text.String()))
	})
	server := &http.Server{Handler: mux}
	go func() { _ = server.Serve(listener) }()
	return server, int32(listener.Addr().(*net.TCPAddr).Port), nil
}
