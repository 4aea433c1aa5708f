#include "cli/server_view.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"

namespace trainyard::cli {
namespace {

const Instant kServerNow = from_milliseconds(1'763'631'900'000);  // 2025-11-20 09:45:00Z

Json server_json() {
  return Json{{"Endpoint", "https://127.0.0.1:4566"},
              {"Account", "123456789012"},
              {"StartTime", 1'763'628'300.0},
              {"DataDirectory", "/srv/yard"},
              {"DiskFreeBytes", int64_t{120} << 30},
              {"DiskSizeBytes", int64_t{500} << 30},
              {"DiskReserveBytes", int64_t{256} << 20},
              {"LedgerBytes", int64_t{3} << 20},
              {"Jobs", {{{"State", "active"}, {"Count", 2}}, {{"State", "waiting"}, {"Count", 1}}}},
              {"Agents", 2},
              {"CertificateNames", {"127.0.0.1", "yard.lan"}},
              {"CertificateEndTime", 1'797'931'900.0}};
}

TEST(ServerView, FormatsThePage) {
  EXPECT_EQ(server_page({}, server_json(), kServerNow),
            "endpoint     https://127.0.0.1:4566\n"
            "account      123456789012\n"
            "started      2025-11-20 08:45:00Z, 1h00m ago\n"
            "data         /srv/yard\n"
            "disk         120 GiB free of 500 GiB, 256 MiB of it reserved\n"
            "ledger       3.0 MiB\n"
            "jobs         2 active, 1 waiting\n"
            "agents       2\n"
            "certificate  ends 2026-12-22 09:31:40Z\n"
            "names        127.0.0.1, yard.lan\n");
}

TEST(ServerView, HasSectionsForWarningsAndErrors) {
  Json json = server_json();
  json["Warnings"] = {"quota[0].who: user or role 'bob' not found"};
  json["Errors"] = {{{"Time", 1'763'631'840.0}, {"Message", "launch: no \033[2Jaddress"}}};
  const std::string page = server_page({}, json, kServerNow);
  EXPECT_NE(page.find("\nWarnings\n  quota[0].who: user or role 'bob' not found\n"),
            std::string::npos)
      << page;
  EXPECT_NE(page.find("\nLast errors\n  2025-11-20 09:44:00Z  launch: no "), std::string::npos)
      << page;
  EXPECT_EQ(page.find('\033'), std::string::npos);
}

TEST(ServerView, PaintsAFullDiskAndAnExpiredCertificateRed) {
  Json json = server_json();
  json["DiskFreeBytes"] = 1 << 20;
  json["CertificateEndTime"] = 1'763'600'000.0;
  const std::string page = server_page({.colours = true}, json, kServerNow);
  EXPECT_NE(page.find("\033[31m1.0 MiB free of 500 GiB, below the reserve of 256 MiB"),
            std::string::npos)
      << page;
  EXPECT_NE(page.find("\033[31mended 2025-11-20"), std::string::npos) << page;
}

TEST(ServerView, LinesFitOnTheTerminal) {
  Json json = server_json();
  json["Warnings"] = {
      "machine[0].memory_gib: box offers 999 GiB of memory to jobs, but this machine "
      "has 24.0 GiB: jobs that use what they get run out of memory"};
  for (const int columns : {60, 80, 120, 200}) {
    const std::string page = server_page({.columns = columns}, json, kServerNow);
    for (const auto line : split(page, '\n')) EXPECT_LE(width_of(line), columns) << page;
    EXPECT_NE(page.find("memory"), std::string::npos);
  }
}

}  // namespace
}  // namespace trainyard::cli
