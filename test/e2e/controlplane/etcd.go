package main

import (
	"flag"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"go.etcd.io/etcd/server/v3/embed"
)

// runEtcd runs one etcd member: kcp etcd -data-dir D -client URL -peer URL [-fsync=false]
func runEtcd(args []string) error {
	fs := flag.NewFlagSet("etcd", flag.ExitOnError)
	dir := fs.String("data-dir", "", "data folder")
	client := fs.String("client", "http://127.0.0.1:2379", "client URL (http:// or unix://)")
	peer := fs.String("peer", "http://127.0.0.1:2380", "peer URL")
	fsync := fs.Bool("fsync", true, "false: do not fsync (tests only)")
	level := fs.String("log-level", "warn", "log level")
	_ = fs.Parse(args)
	cu, err := url.Parse(*client)
	if err != nil {
		return err
	}
	pu, err := url.Parse(*peer)
	if err != nil {
		return err
	}
	cfg := embed.NewConfig()
	cfg.Dir = *dir
	cfg.LogLevel = *level
	cfg.ListenClientUrls = []url.URL{*cu}
	cfg.AdvertiseClientUrls = []url.URL{*cu}
	cfg.ListenPeerUrls = []url.URL{*pu}
	cfg.AdvertisePeerUrls = []url.URL{*pu}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.UnsafeNoFsync = !*fsync
	cfg.QuotaBackendBytes = 2 << 30
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return err
	}
	sig := make(chan os.Signal, 1)
	signal.Notify(sig, syscall.SIGTERM, syscall.SIGINT)
	select {
	case <-sig:
		e.Close()
		return nil
	case err := <-e.Err():
		return err
	}
}
