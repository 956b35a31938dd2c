// The network of scripts/bench-ns3 in ns-3: leaves and spines, and hosts each of which sends to another by TCP all the time.
// Counts the links that packets reach.
#include <chrono>
#include <iostream>
#include <vector>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

static uint64_t g_crossed = 0;

static void
Crossed(Ptr<const Packet>)
{
    ++g_crossed;
}

int
main(int argc, char** argv)
{
    int leaves = 8;
    int spines = 4;
    int hosts = 64;
    double milliseconds = 100;
    CommandLine command;
    command.AddValue("leaves", "leaves", leaves);
    command.AddValue("spines", "spines", spines);
    command.AddValue("hosts", "hosts", hosts);
    command.AddValue("milliseconds", "length in simulated time", milliseconds);
    command.Parse(argc, argv);

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpCubic"));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 20));

    NodeContainer leaf;
    NodeContainer spine;
    NodeContainer host;
    leaf.Create(leaves);
    spine.Create(spines);
    host.Create(hosts);
    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    stack.InstallAll();

    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
    link.SetDeviceAttribute("Mtu", UintegerValue(1500));
    link.SetChannelAttribute("Delay", StringValue("5us"));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("100p"));
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    TrafficControlHelper control;
    auto join = [&](Ptr<Node> one, Ptr<Node> other) {
        NetDeviceContainer devices = link.Install(one, other);
        Ipv4InterfaceContainer ends = addresses.Assign(devices);
        // The queue of the device is the only one.
        control.Uninstall(devices);
        addresses.NewNetwork();
        return ends.GetAddress(0);
    };
    for (int i = 0; i < leaves; ++i)
    {
        for (int j = 0; j < spines; ++j)
        {
            join(leaf.Get(i), spine.Get(j));
        }
    }
    std::vector<Ipv4Address> at;
    for (int i = 0; i < hosts; ++i)
    {
        at.push_back(join(host.Get(i), leaf.Get(i % leaves)));
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    for (int i = 0; i < hosts; ++i)
    {
        int to = (i * 7 + 9) % hosts;
        uint16_t port = 5000 + i;
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
        sink.Install(host.Get(to)).Start(Seconds(0));
        BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(at[to], port));
        source.SetAttribute("MaxBytes", UintegerValue(0));
        source.Install(host.Get(i)).Start(Seconds(0));
    }
    Config::ConnectWithoutContext("/NodeList/*/DeviceList/*/$ns3::PointToPointNetDevice/MacTx",
                                  MakeCallback(&Crossed));
    Simulator::Stop(MicroSeconds(milliseconds * 1000));
    Simulator::Run();
    std::cout << g_crossed << std::endl;
}
