"""The dashboard *machines*, by node-exporter: CPU, memory, disks, network."""

from nightwire.monitoring.dashboards.panel import RATE, Panel, Row, number_panel

REAL_DISK = '{fstype!~"overlay|ramfs"}'
DISK_LEFT = f"node_filesystem_avail_bytes{REAL_DISK} / node_filesystem_size_bytes{REAL_DISK}"
BUSY = '1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[1m]))'
MEMORY_TAKEN = "1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes"


def _rate(counter: str, by: str) -> str:
    return f"sum by (instance, {by}) (rate({counter}[1m]))"


NOW = Row(
    "Now",
    (
        number_panel(
            "CPU taken", "Share of all cores.", {"{{instance}}": BUSY}, unit="percentunit", red_above=0.95
        ),
        number_panel(
            "Memory taken",
            "Share that is taken; what the kernel would give back counts as free.",
            {"{{instance}}": MEMORY_TAKEN},
            unit="percentunit",
            red_above=0.95,
        ),
        number_panel(
            "Least disk left",
            "Share that is free of the disk with least. Kafka stops when it is full.",
            {"{{instance}}": f"min by (instance) ({DISK_LEFT})"},
            unit="percentunit",
            red_below=0.1,
        ),
        number_panel(
            "Waiting for a core",
            "Processes that run or wait, for each core; above 1 they wait.",
            {
                "{{instance}}": "node_load1 / on (instance) count by (instance)"
                ' (node_cpu_seconds_total{mode="idle"})'
            },
            red_above=2,
        ),
        number_panel(
            "Open files",
            "Share of what the kernel allows.",
            {"{{instance}}": "node_filefd_allocated / node_filefd_maximum"},
            unit="percentunit",
            red_above=0.8,
        ),
        number_panel(
            "Since it was started",
            "Time since the machine came up.",
            {"{{instance}}": "node_time_seconds - node_boot_time_seconds"},
            unit="s",
        ),
    ),
)

CORES = Row(
    "CPU and memory",
    (
        Panel(
            "CPU by kind",
            "Cores taken, by what they do; *iowait* is waiting for a disk, *steal* is taken by the host.",
            {"{{mode}}": 'sum by (mode) (rate(node_cpu_seconds_total{mode!="idle"}[1m]))'},
            width=12,
        ),
        Panel(
            "Memory",
            "Bytes: in all, available, and of files that the kernel keeps: readers are served from them.",
            {
                "in all": "node_memory_MemTotal_bytes",
                "available": "node_memory_MemAvailable_bytes",
                "files": "node_memory_Cached_bytes",
            },
            unit="bytes",
            width=12,
        ),
    ),
)

DISKS = Row(
    "Disks and network",
    (
        Panel(
            "Disk left",
            "Share of each disk that is free.",
            {"{{mountpoint}}": DISK_LEFT},
            unit="percentunit",
            red_below=0.1,
        ),
        Panel(
            "Days until it is full",
            "If it goes on as in the last six hours; a year at most.",
            {
                "{{mountpoint}}": f"clamp_max(node_filesystem_avail_bytes{REAL_DISK}"
                f" / clamp_min(-deriv(node_filesystem_avail_bytes{REAL_DISK}[6h]), 1) / 86400, 365)"
            },
            red_below=2,
        ),
        Panel(
            "Reads and writes",
            "Bytes a second.",
            {
                "read {{device}}": _rate("node_disk_read_bytes_total", "device"),
                "write {{device}}": _rate("node_disk_written_bytes_total", "device"),
            },
            unit="Bps",
        ),
        Panel(
            "Disks busy",
            "Share of the time that a disk had something to do.",
            {"{{device}}": _rate("node_disk_io_time_seconds_total", "device")},
            unit="percentunit",
        ),
        Panel(
            "Network",
            "Bytes a second; *lo* is what processes of one machine tell each other.",
            {
                "in {{device}}": _rate("node_network_receive_bytes_total", "device"),
                "out {{device}}": _rate("node_network_transmit_bytes_total", "device"),
            },
            unit="Bps",
        ),
        Panel(
            "Network errors",
            "Packets a second that were damaged or dropped.",
            {
                "in {{device}}": _rate("node_network_receive_errs_total", "device"),
                "dropped {{device}}": _rate("node_network_receive_drop_total", "device"),
                "out {{device}}": _rate("node_network_transmit_errs_total", "device"),
            },
            unit=RATE,
        ),
    ),
)

EMPTY = "where node-exporter is not installed"
MACHINES: tuple[Row, ...] = tuple(Row(row.title, row.panels, EMPTY) for row in (NOW, CORES, DISKS))
