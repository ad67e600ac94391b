package main

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// fault is what happens to requests that match, instead of, or before and after, being carried out.
type fault struct {
	Method  string                // empty: any
	Part    string                // of the path; empty: any
	Times   int                   // how often; -1: always
	Skip    int                   // so many matching requests pass first
	Delay   time.Duration         // before it goes on
	Hold    <-chan struct{}       // wait for this before it goes on
	Status  int                   // answered with, without carrying it out
	Retry   int                   // Retry-After, in seconds
	Cut     bool                  // the connection breaks: after it was carried out, so that nobody knows
	Refuse  bool                  // the connection breaks before it is carried out
	Happens func(r *http.Request) // told of each
}

// Broken connections are what we make here: nothing to complain of.
var quiet = log.New(io.Discard, "", 0)

// proxy stands between queued and the API server, with TLS on both sides, and breaks things.
type proxy struct {
	server *http.Server
	url    string

	mu     sync.Mutex
	faults []*fault
	hits   int
	live   map[*http.Request]context.CancelFunc
	gone   int // answers that said that a version is too old
}

func startProxy(p *plane) (*proxy, error) {
	target, err := url.Parse(p.server)
	if err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(p.path("pki", "proxy.crt"), p.path("pki", "proxy.key"))
	if err != nil {
		return nil, err
	}
	admin := p.admin.Transport.(*http.Transport)
	x := &proxy{live: map[*http.Request]context.CancelFunc{}}
	through := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval: -1,
		ErrorLog:      quiet,
		// The caller's own credentials go along; our client certificate must not.
		ModifyResponse: func(answer *http.Response) error { x.spy(answer); return nil },
		Transport:      &http.Transport{TLSClientConfig: &tls.Config{RootCAs: admin.TLSClientConfig.RootCAs}, MaxIdleConnsPerHost: 64},
		ErrorHandler:   func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	x.url = "https://" + listener.Addr().String()
	x.server = &http.Server{TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}}, ErrorLog: quiet,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { x.serve(through, w, r) })}
	go func() { _ = x.server.ServeTLS(listener, "", "") }()
	return x, nil
}

// cut breaks all connections that are in use.
func (x *proxy) cut() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, cancel := range x.live {
		cancel()
	}
}

// expire begins to count the answers that say that a version is too old, and returns what tells the count.
func (x *proxy) expire() func() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.gone = 0
	return func() int {
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.gone
	}
}

// spy looks at the first bytes of what a watch is told: an ERROR event with code 410.
func (x *proxy) spy(answer *http.Response) {
	note := func() {
		x.mu.Lock()
		x.gone++
		x.mu.Unlock()
	}
	if answer.StatusCode == http.StatusGone {
		note()
	} else if strings.Contains(answer.Request.URL.RawQuery, "watch=") {
		answer.Body = &spied{ReadCloser: answer.Body, note: note}
	}
}

type spied struct {
	io.ReadCloser
	note func()
}

func (s *spied) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if s.note != nil && strings.Contains(string(p[:n]), `"code":410`) {
		s.note()
		s.note = nil
	}
	return n, err
}

// track lets cut end the request.
func (x *proxy) track(r *http.Request) (*http.Request, func()) {
	ctx, cancel := context.WithCancel(r.Context())
	r = r.WithContext(ctx)
	x.mu.Lock()
	x.live[r] = cancel
	x.mu.Unlock()
	return r, func() {
		x.mu.Lock()
		delete(x.live, r)
		x.mu.Unlock()
		cancel()
	}
}

func (x *proxy) stop() { _ = x.server.Close() }

// set replaces all faults.
func (x *proxy) set(faults ...*fault) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.faults, x.hits = faults, 0
}

// count tells how many requests were hit since set.
func (x *proxy) count() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.hits
}

func (x *proxy) pick(r *http.Request) *fault {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, f := range x.faults {
		if f.Times == 0 || (f.Method != "" && f.Method != r.Method) || !strings.Contains(r.URL.RequestURI(), f.Part) {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			continue
		}
		if f.Times > 0 {
			f.Times--
		}
		x.hits++
		return f
	}
	return nil
}

// nowhere takes an answer that nobody is to see.
type nowhere struct{ header http.Header }

func (n nowhere) Header() http.Header         { return n.header }
func (n nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (n nowhere) WriteHeader(int)             {}

func (x *proxy) serve(through http.Handler, w http.ResponseWriter, r *http.Request) {
	f := x.pick(r)
	r, done := x.track(r)
	defer done()
	if f == nil {
		through.ServeHTTP(w, r)
		return
	}
	if f.Happens != nil {
		f.Happens(r)
	}
	if f.Hold != nil {
		select {
		case <-f.Hold:
		case <-r.Context().Done():
		}
	}
	time.Sleep(f.Delay)
	switch {
	case f.Refuse:
		panic(http.ErrAbortHandler)
	case f.Cut:
		through.ServeHTTP(nowhere{http.Header{}}, r)
		panic(http.ErrAbortHandler)
	case f.Status != 0:
		if f.Retry > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(f.Retry))
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(f.Status)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"made up by the test","reason":"Made Up","code":` + strconv.Itoa(f.Status) + `}`))
	default:
		through.ServeHTTP(w, r)
	}
}
