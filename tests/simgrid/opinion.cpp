// tests/simgrid/opinion.cpp - SimGrid's max-min rates against sim/share.c's
//
// Random links and flows; each flow has a link of its own as well, which carries no more
// than it can use and has the latency that makes SimGrid weigh all flows alike. Rates are
// read off transfers that have run for a second. Prints the largest relative difference.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include <simgrid/s4u.hpp>

extern "C" {
#include "base/arena.h"
#include "sim/share.h"
}

namespace sg4 = simgrid::s4u;

using Flow = std::vector<uint32_t>;

static const double scale = 1e6, size_bytes = 1e12;

static std::vector<double> theirs(const std::vector<double> &capacity,
				  const std::vector<Flow> &flow)
{
	auto *zone = sg4::create_full_zone("zone");
	std::vector<sg4::Link *> link;
	std::vector<sg4::Host *> from, to;
	std::vector<double> rate(flow.size());

	for (size_t i = 0; i < capacity.size(); i++)
		link.push_back(zone->create_link("l" + std::to_string(i),
						 capacity[i] * scale)
				       ->set_latency(0)->seal());
	for (size_t f = 0; f < flow.size(); f++) {
		const std::string n = std::to_string(f);
		std::vector<sg4::LinkInRoute> route;

		from.push_back(zone->create_host("a" + n, 1e9)->seal());
		to.push_back(zone->create_host("b" + n, 1e9)->seal());
		route.emplace_back(zone->create_link("own" + n, scale)
					   ->set_latency(1e-6)->seal());
		for (uint32_t l : flow[f])
			route.emplace_back(link[l]);
		zone->add_route(from[f]->get_netpoint(), to[f]->get_netpoint(), nullptr,
				nullptr, route, false);
	}
	zone->seal();
	sg4::Actor::create("watch", from[0], [&]() {
		std::vector<sg4::CommPtr> comm;

		for (size_t f = 0; f < flow.size(); f++) {
			comm.push_back(sg4::Comm::sendto_init(from[f], to[f]));
			comm[f]->set_payload_size((uint64_t)size_bytes);
			comm[f]->start();
		}
		sg4::this_actor::sleep_for(0.5);
		for (size_t f = 0; f < flow.size(); f++)
			rate[f] = comm[f]->get_remaining();
		sg4::this_actor::sleep_for(1);
		for (size_t f = 0; f < flow.size(); f++)
			rate[f] = (rate[f] - comm[f]->get_remaining()) / scale;
		for (auto &c : comm)
			c->cancel();
	});
	sg4::Engine::get_instance()->run();
	return rate;
}

static std::vector<double> ours(const std::vector<double> &capacity,
				const std::vector<Flow> &flow)
{
	struct arena mem = {};
	struct share s;
	std::vector<double> rate;

	share_init(&s, &mem, capacity.data(), capacity.size());
	for (const Flow &f : flow)
		share_add(&s, f.data(), nullptr, f.size());
	share_solve(&s);
	for (size_t f = 0; f < flow.size(); f++)
		rate.push_back(s.flow[f].rate);
	arena_release(&mem);
	return rate;
}

int main(int argc, char **argv)
{
	sg4::Engine e(&argc, argv);
	std::mt19937 rnd(argc > 1 ? (unsigned)std::stoul(argv[1]) : 1);
	std::vector<double> capacity(6 + rnd() % 20);
	std::vector<Flow> flow(10 + rnd() % 60);
	double worst = 0;

	sg4::Engine::set_config("network/model:CM02");
	sg4::Engine::set_config("network/TCP-gamma:0");
	sg4::Engine::set_config("network/crosstraffic:0");
	sg4::Engine::set_config("network/optim:Full");
	sg4::Engine::set_config("network/bandwidth-factor:1");
	sg4::Engine::set_config("network/latency-factor:1");
	sg4::Engine::set_config("network/weight-S:0");
	for (double &c : capacity)
		c = (1 + rnd() % 100) / 10.;
	for (Flow &f : flow) {
		size_t hops = 1 + rnd() % 4;

		while (f.size() < hops) {
			uint32_t l = (uint32_t)(rnd() % capacity.size());

			if (std::find(f.begin(), f.end(), l) == f.end())
				f.push_back(l);
		}
	}
	std::vector<double> a = ours(capacity, flow), b = theirs(capacity, flow);
	for (size_t f = 0; f < flow.size(); f++)
		worst = std::max(worst, std::fabs(a[f] / b[f] - 1));
	std::printf("%zu flows on %zu links: differ by at most %.2e\n", flow.size(),
		    capacity.size(), worst);
	return worst < 1e-3 ? 0 : 1;
}
