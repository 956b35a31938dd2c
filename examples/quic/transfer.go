// A download over QUIC by quic-go, which understands transfer.py: `transfer serve`, and `transfer get HOST BYTES`, which
// prints the duration. The server creates a self-signed certificate, which the client does not verify.
package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/quic-go/quic-go"
)

const (
	port     = "4433"
	protocol = "narrows-example"
)

// zeros is an endless reader, as /dev/zero.
type zeros struct{}

func (zeros) Read(to []byte) (int, error) {
	clear(to)
	return len(to), nil
}

func certificate() (tls.Certificate, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"server"},
		NotBefore: now.Add(-24 * time.Hour), NotAfter: now.Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, err
}

// answer sends as many bytes as the number that arrives on the stream.
func answer(stream *quic.Stream) {
	defer stream.Close()
	asked, err := io.ReadAll(io.LimitReader(stream, 20))
	if err != nil {
		return
	}
	if count, err := strconv.ParseInt(string(asked), 10, 64); err == nil {
		io.CopyN(stream, zeros{}, count)
	}
}

func serve() error {
	own, err := certificate()
	if err != nil {
		return err
	}
	listener, err := quic.ListenAddr("[::]:"+port,
		&tls.Config{Certificates: []tls.Certificate{own}, NextProtos: []string{protocol}}, nil)
	if err != nil {
		return err
	}
	for {
		connection, err := listener.Accept(context.Background())
		if err != nil {
			return err
		}
		go func() {
			for {
				stream, err := connection.AcceptStream(context.Background())
				if err != nil {
					return
				}
				go answer(stream)
			}
		}()
	}
}

func get(host, text string) error {
	count, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return err
	}
	begin := time.Now()
	settings := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}}
	connection, err := quic.DialAddr(context.Background(), net.JoinHostPort(host, port), settings, nil)
	if err != nil {
		return err
	}
	defer connection.CloseWithError(0, "")
	connected := time.Now()
	stream, err := connection.OpenStream()
	if err != nil {
		return err
	}
	if _, err = io.WriteString(stream, text); err != nil {
		return err
	}
	stream.Close()
	got, err := io.Copy(io.Discard, stream)
	end := time.Now()
	if err != nil || got != count {
		return fmt.Errorf("%d of %d bytes arrived: %v", got, count, err)
	}
	rate := 8e-6 * float64(count) / end.Sub(connected).Seconds()
	fmt.Printf("connected after %.3f s, %d bytes after %.3f s (%.2f Mbit/s)\n",
		connected.Sub(begin).Seconds(), count, end.Sub(begin).Seconds(), rate)
	return nil
}

func main() {
	var err error
	switch {
	case len(os.Args) == 2 && os.Args[1] == "serve":
		err = serve()
	case len(os.Args) == 4 && os.Args[1] == "get":
		err = get(os.Args[2], os.Args[3])
	default:
		err = fmt.Errorf("usage: transfer serve | transfer get HOST BYTES")
	}
	if err != nil {
		log.Fatal(err)
	}
}
