/* Each word is one attack on the sandbox. Exit 0: it got what it wanted. Exit 1: it was refused. Others: see attacks.py. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char block[1 << 20];
static const char *argument;

static int read_file(void) {
    int fd = open(argument, O_RDONLY);
    ssize_t got = fd < 0 ? -1 : read(fd, block, sizeof block);
    if (got <= 0) return 1;
    fwrite(block, 1, (size_t)got, stdout);
    return 0;
}

static int write_file(void) {
    if (open(argument, O_WRONLY) >= 0 || open(argument, O_WRONLY | O_CREAT, 0666) >= 0 || mkdir(argument, 0777) == 0) return 0;
    return chmod(argument, 0666) == 0 || unlink(argument) == 0 ? 0 : 1;
}

static int network(void) {
    struct sockaddr_in port = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argument))};
    port.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(socket(AF_INET, SOCK_STREAM, 0), (void *)&port, sizeof port) == 0) return 0;
    port.sin_addr.s_addr = htonl(0xC0000201); /* 192.0.2.1, a documentation address: only the route counts */
    if (sendto(socket(AF_INET, SOCK_DGRAM, 0), "x", 1, 0, (void *)&port, sizeof port) == 1) return 0;
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "kernelwright-test-%s", argument);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    return connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&name, size) == 0 ? 0 : 1;
}

static int fork_bomb(void) {
    for (;;) fork();
}

static int a_hundred_children(void) {
    for (int i = 0; i < 100; i++)
        if (fork() == 0) pause();
    return 0;
}

static int kill_parent(void) {
    int signals[] = {SIGTERM, SIGSTOP, SIGKILL, SIGCHLD, SIGSEGV};
    signal(SIGTERM, SIG_IGN), signal(SIGCHLD, SIG_IGN), signal(SIGSEGV, SIG_IGN);
    for (int i = 0; i < 5; i++) kill(getppid(), signals[i]), kill(1, signals[i]);
    kill(-1, SIGTERM);
    return 7;
}

static int trace_parent(void) {
    return ptrace(PTRACE_SEIZE, getppid(), 0, 0) == 0 || ptrace(PTRACE_ATTACH, getppid(), 0, 0) == 0 ? 0 : 1;
}

static int trace_child(void) { /* refused by the filter, not by ownership */
    return ptrace(PTRACE_TRACEME, 0, 0, 0) == 0 ? 0 : 1;
}

static int forge(void) {
    static const char forged[] = "end 0 0 1 1 1 none\n";
    char path[64];
    for (int fd = 3; fd < 1024; fd++) {
        (void)!write(fd, forged, sizeof forged - 1);
        snprintf(path, sizeof path, "/proc/%d/fd/%d", getppid(), fd);
        int copy = open(path, O_WRONLY | O_NONBLOCK);
        if (copy >= 0) (void)!write(copy, forged, sizeof forged - 1);
        copy = (int)syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, getppid(), 0), fd, 0);
        if (copy >= 0) (void)!write(copy, forged, sizeof forged - 1);
    }
    snprintf(path, sizeof path, "/proc/%d/mem", getppid());
    if (open(path, O_RDWR) >= 0) return 0;
    struct iovec here = {block, 16}, there = {(void *)0x400000, 16};
    return process_vm_readv(getppid(), &here, 1, &there, 1, 0) > 0 ? 0 : 3;
}

static int call_home(void) { /* where a container's launcher was given its channels */
    struct sockaddr_un name = {AF_UNIX, "/run/kernelwright/home/socket"};
    return connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&name, sizeof name) == 0 ? 0 : 1;
}

static int descriptors(void) { /* how many it was given beyond the three */
    int count = 0;
    for (int fd = 3; fd < 4096; fd++) count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static int plant_links(void) {
    if (symlink(argument, "link") || symlink("..", "folder") || mkfifo("fifo", 0666)) return 2;
    int fd = open("sparse", O_CREAT | O_WRONLY, 0666);
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    if (fd < 0 || ftruncate(fd, (off_t)limit.rlim_cur)) return 2;
    if (mkdir("plain", 0777) || (fd = open("plain/file", O_CREAT | O_WRONLY, 0666)) < 0) return 2;
    return write(fd, "honest", 6) == 6 ? 0 : 2;
}

static int flood(void) {
    memset(block, 'x', sizeof block);
    for (;;) (void)!write(1, block, sizeof block);
}

static int loop(void) {
    for (volatile int i = 0;; i = i + 1) continue;
}

static int speak_and_loop(void) {
    printf("said\n");
    return loop();
}

/* A daemon in a session of its own holds the FIFO open; its writer's end is the proof of its death. */
static int outlive(void) {
    int ready[2];
    char byte;
    if (pipe(ready)) return 2;
    if (fork() == 0) {
        setsid();
        if (fork() != 0) _exit(0);
        signal(SIGTERM, SIG_IGN), signal(SIGHUP, SIG_IGN);
        int fd = open("fifo", O_WRONLY);
        if (fd < 0 || write(fd, "r", 1) != 1 || write(ready[1], "r", 1) != 1) _exit(2);
        for (;;) pause();
    }
    return read(ready[0], &byte, 1) == 1 ? 0 : 2;
}

static int outlive_and_wait(void) {
    int failed = outlive();
    for (; !failed;) pause();
    return failed;
}

static int memory(void) {
    for (;;) memset(malloc(sizeof block), 1, sizeof block);
}

static int memory_in_children(void) {
    for (int i = 0; i < 8; i++)
        if (fork() == 0) {
            memset(malloc(40 << 20), 1, 40 << 20);
            for (;;) pause();
        }
    for (;;) pause();
}

static int shared_memory(void) { /* 100 MiB shared with eight children is 100 MiB, not 900 */
    memset(malloc(100 << 20), 1, 100 << 20);
    for (int i = 0; i < 8; i++)
        if (fork() == 0) {
            for (;;) pause();
        }
    struct timespec while_watched = {0, 200000000};
    nanosleep(&while_watched, NULL);
    return 5;
}

static int reserve(void) { /* address space is not memory */
    return mmap(NULL, 1L << 40, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED ? 1 : 5;
}

static int fill(int fd) {
    while (write(fd, block, sizeof block) > 0) continue;
    return errno;
}

static int fill_file(void) { /* then waits, so that a watcher has the time to look */
    fill(open(argument, O_CREAT | O_WRONLY, 0666));
    for (;;) pause();
}

static int fill_memory_file(void) {
    for (;;) fill(memfd_create("x", 0));
}

static int big_file(void) { return fill(open("big", O_CREAT | O_WRONLY, 0666)); }

static int many_files(void) {
    for (int i = 0;; i++) {
        char name[32];
        snprintf(name, sizeof name, "file%d", i);
        int fd = open(name, O_CREAT | O_WRONLY, 0666);
        if (fd < 0 || write(fd, block, sizeof block) < 0) pause();
        close(fd);
    }
}

static int nameless_files(void) {
    for (;;) {
        int fd = open("nameless", O_CREAT | O_WRONLY | O_EXCL, 0666);
        unlink("nameless");
        for (int i = 0; i < 16; i++)
            if (write(fd, block, sizeof block) < 0) pause();
    }
}

static int closed_folder(void) { /* files in a folder that nobody may look into any more */
    int fds[64];
    if (mkdir("closed", 0777)) return 2;
    for (int i = 0; i < 64; i++) {
        char name[32];
        snprintf(name, sizeof name, "closed/file%d", i);
        fds[i] = open(name, O_CREAT | O_WRONLY, 0666);
    }
    chmod("closed", 0);
    for (int i = 0; i < 64; i++)
        for (int j = 0; j < 16; j++)
            if (write(fds[i], block, sizeof block) < 0) return 2;
    for (;;) pause();
}

static int remount(void) {
    const char *places[] = {"/", "/usr", "/dev"};
    for (int i = 0; i < 3; i++)
        if (mount(NULL, places[i], NULL, MS_REMOUNT | MS_BIND, NULL) == 0) return 0;
    if (mount("tmpfs", "/tmp", "tmpfs", 0, NULL) == 0 || umount2("/dev/shm", MNT_DETACH) == 0) return 0;
    return syscall(SYS_open_tree, AT_FDCWD, "/usr", 1) >= 0 ? 0 : 1;
}

static int new_user(void) {
    if (unshare(CLONE_NEWUSER) == 0 || unshare(CLONE_NEWNS) == 0) return 0;
    if (syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL) >= 0) return 0;
    struct clone_args arguments = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    return syscall(SYS_clone3, &arguments, sizeof arguments) >= 0 ? 0 : 1;
}

static int become_root(void) { return setuid(0) == 0 || setgid(0) == 0 || chroot("/") == 0 ? 0 : 1; }

static const struct {
    const char *name;
    long number;
} doors[] = {
    {"bpf", SYS_bpf}, {"perf_event_open", SYS_perf_event_open}, {"userfaultfd", SYS_userfaultfd},
    {"io_uring_setup", SYS_io_uring_setup}, {"io_uring_enter", SYS_io_uring_enter}, {"keyctl", SYS_keyctl},
    {"add_key", SYS_add_key}, {"request_key", SYS_request_key}, {"kexec_load", SYS_kexec_load},
    {"init_module", SYS_init_module}, {"finit_module", SYS_finit_module}, {"delete_module", SYS_delete_module},
    {"open_by_handle_at", SYS_open_by_handle_at}, {"setns", SYS_setns}, {"kcmp", SYS_kcmp}, {"syslog", SYS_syslog},
    {"process_vm_writev", SYS_process_vm_writev}, {"swapon", SYS_swapon}, {"reboot", SYS_reboot},
    {"personality", SYS_personality}, {"fanotify_init", SYS_fanotify_init}, {"acct", SYS_acct}, {"mount", SYS_mount},
    {"pivot_root", SYS_pivot_root}, {"fsopen", SYS_fsopen}, {"move_mount", SYS_move_mount}, {"quotactl", SYS_quotactl},
};

static int kernel_doors(void) { /* refused by the filter: before the kernel looks at any argument */
    for (size_t i = 0; i < sizeof doors / sizeof *doors; i++)
        if (syscall(doors[i].number, 0, 0, 0, 0, 0) >= 0 || (errno != EPERM && errno != ENOSYS)) return puts(doors[i].name), 0;
    return 1;
}

static long i386_getpid(void) {
#ifdef __x86_64__
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
    return result;
#else
    return -1;
#endif
}

static long x32_getpid(void) {
#ifdef __x86_64__
    return syscall(0x40000000L + SYS_getpid);
#else
    return -1;
#endif
}

static int other_abi(void) { /* the same calls by doors whose numbers no list of this machine's names; a child may die of it */
    long (*const ways[])(void) = {i386_getpid, x32_getpid};
    for (int i = 0; i < 2; i++) {
        int status;
        pid_t child = fork();
        if (child == 0) _exit(ways[i]() > 0 ? 0 : 1);
        if (waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
    }
    return 1;
}

static int other_networks(void) { /* families that no network namespace holds, or with much of the kernel behind them */
    static const int families[] = {40 /* VSOCK */, 38 /* ALG */, 17 /* PACKET */, 21 /* RDS */, 30 /* TIPC */,
                                   31 /* BLUETOOTH */, 29 /* CAN */, 42 /* QIPCRTR */, 44 /* XDP */};
    static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        for (size_t j = 0; j < sizeof types / sizeof *types; j++)
            if (socket(families[i], types[j], 0) >= 0) return printf("family %d\n", families[i]), 0;
    return socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) >= 0 ? 0 : 1;
}

static int open_devices(void) {
    static const char *const nodes[] = {"/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", "/dev/fuse", "/dev/kvm", "/dev/vda",
                                        "/dev/sda", "/dev/nvme0", "/dev/nvme0n1", "/dev/net/tun", "/dev/vsock", "/dev/uinput",
                                        "/dev/loop-control", "/dev/mapper/control", "/dev/vhost-net", "/dev/cpu/0/msr"};
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
        if (open(nodes[i], O_RDONLY) >= 0 || open(nodes[i], O_WRONLY) >= 0) return puts(nodes[i]), 0;
    return 1;
}

static int make_devices(void) {
    static const char *const places[] = {"/tmp/mem", "mem", "/dev/shm/mem"};
    for (int i = 0; i < 3; i++)
        if (mknod(places[i], S_IFCHR | 0666, makedev(1, 1)) == 0 || mknod(places[i], S_IFBLK | 0666, makedev(254, 0)) == 0) return 0;
    return 1;
}

static int found_one(const char *path, const struct stat *status, int kind, struct FTW *walk) {
    (void)walk;
    return kind == FTW_F && S_ISREG(status->st_mode) && open(path, O_WRONLY | O_NONBLOCK) >= 0 ? puts(path), 1 : 0;
}

static int settings(void) { /* sysctls, cgroups (release_agent among them), drivers */
    static const char *const trees[] = {"/proc/sys", "/proc/irq", "/proc/bus", "/proc/fs", "/sys"};
    for (int i = 0; i < 5; i++)
        if (nftw(trees[i], found_one, 32, FTW_PHYS) == 1) return 0;
    return 1;
}

static int writable_mounts(void) { /* beside those that are meant to be written */
    static const char *const meant[] = {"/workspace", "/tmp", "/dev/shm", "/dev/mqueue"};
    FILE *table = fopen("/proc/self/mounts", "r");
    char at[512], made[600];
    while (table && fscanf(table, "%*s %511s %*[^\n]", at) == 1) {
        int skip = 0;
        for (int i = 0; i < 4; i++) skip |= strcmp(at, meant[i]) == 0;
        snprintf(made, sizeof made, "%s/new", strcmp(at, "/") ? at : "");
        if (!skip && (open(made, O_CREAT | O_WRONLY, 0666) >= 0 || mkdir(made, 0777) == 0)) return puts(at), 0;
    }
    return table ? 1 : 0;
}

static int shared_mounts(void) { /* what is mounted here would be mounted there */
    FILE *table = fopen("/proc/self/mountinfo", "r");
    static char line[4096];
    while (table && fgets(line, sizeof line, table)) {
        char *end = strstr(line, " - ");
        if (end) *end = 0;
        if (strstr(line, " shared:")) return puts(line), 0;
    }
    return table ? 1 : 0;
}

static int rights(void) { /* no capability in hand, none to be had by a program that has some, no group that opens doors */
    static const char *const none[] = {"CapInh:", "CapPrm:", "CapEff:", "CapAmb:"};
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    int seen = 0;
    while (file && fgets(line, sizeof line, file))
        for (int i = 0; i < 4; i++)
            if (!strncmp(line, none[i], 7)) {
                if (strtoull(line + 7, NULL, 16)) return fputs(line, stdout), 0;
                seen++;
            }
    return seen == 4 && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 1 : 0;
}

static int am_root(void) { return geteuid() == 0 || getegid() == 0 ? 0 : 1; }

static int set_user_id(void) { /* a program that belongs to root and runs as its owner */
    if (getuid() == 0) return 0;
    execl(argument, argument, "am_root", (char *)NULL);
    return 1;
}

static int memory_program(void) { /* a program that is in no folder is held as well */
    int from = open("/proc/self/exe", O_RDONLY), to = memfd_create("program", 0);
    ssize_t got;
    while ((got = read(from, block, sizeof block)) > 0)
        if (write(to, block, (size_t)got) != got) return 2;
    char *words[] = {"program", "kernel_doors", NULL}, *none[] = {NULL};
    fexecve(to, words, none);
    return 2;
}

static int set_clock(void) {
    struct timespec then = {1000000000, 0};
    struct timeval also = {1000000000, 0};
    return clock_settime(CLOCK_REALTIME, &then) == 0 || settimeofday(&also, NULL) == 0 || sethostname("mine", 4) == 0 ? 0 : 1;
}

static int real_time(void) { /* would hold the cores against everything that is timed beside it */
    struct sched_param first = {1};
    struct {
        unsigned size, policy;
        unsigned long flags;
        int nice;
        unsigned priority;
        unsigned long runtime, deadline, period;
    } deadline = {48, 6, 0, 0, 0, 10000000, 20000000, 20000000};
    if (sched_setscheduler(0, SCHED_FIFO, &first) == 0 || syscall(SYS_sched_setattr, 0, &deadline, 0) == 0) return 0;
    if (setpriority(PRIO_PROCESS, 0, -5) == 0 || syscall(SYS_ioprio_set, 1, 0, 1 << 13) == 0) return 0;
    struct rlimit more = {99, 99};
    return setrlimit(RLIMIT_RTPRIO, &more) == 0 ? 0 : 1;
}

static int raise_limits(void) {
    static const int kinds[] = {RLIMIT_NOFILE, RLIMIT_FSIZE, RLIMIT_CORE};
    for (int i = 0; i < 3; i++) {
        struct rlimit limit;
        if (getrlimit(kinds[i], &limit) || limit.rlim_max == RLIM_INFINITY) return 0;
        limit.rlim_max++;
        if (setrlimit(kinds[i], &limit) == 0) return 0;
    }
    int fd = open("/proc/self/oom_score_adj", O_WRONLY);
    return fd >= 0 && write(fd, "-1000", 5) == 5 ? 0 : 1;
}

static int fake_input(void) {
    for (int fd = 0; fd < 3; fd++)
        if (ioctl(fd, TIOCSTI, "x") == 0) return 0;
    int terminal = open("/dev/tty", O_RDWR);
    if (terminal >= 0 && ioctl(terminal, TIOCSTI, "x") == 0) return 0;
    int own = open("/dev/ptmx", O_RDWR); /* even at a terminal of its own, so that the filter is seen */
    return own >= 0 && ioctl(own, TIOCSTI, "x") == 0 ? 0 : 1;
}

/* Two jobs at the same time. One leaves and listens wherever jobs could meet, beside the folder that both were given. */
enum { SEGMENT = 0x6b77, PORT = 45871 };

static int listening(int family, const void *name, socklen_t size) {
    int fd = socket(family, SOCK_STREAM, 0);
    return bind(fd, name, size) == 0 && listen(fd, 1) == 0 ? fd : -1;
}

static void wait_for(const char *file) {
    for (struct timespec moment = {0, 2000000}; access(file, F_OK); nanosleep(&moment, NULL)) continue;
}

static const struct sockaddr_un meeting = {AF_UNIX, "\0kernelwright-meeting"};
static const struct sockaddr_in meeting_port = {.sin_family = AF_INET, .sin_port = PORT, .sin_addr = {0x0100007f}};

static int meet(void) {
    prctl(PR_SET_NAME, "kw-meeting");
    shmget(SEGMENT, 4096, IPC_CREAT | 0666);
    close(open("/dev/shm/meeting", O_CREAT | O_WRONLY, 0666)), close(open("/tmp/meeting", O_CREAT | O_WRONLY, 0666));
    listening(AF_UNIX, &meeting, sizeof meeting), listening(AF_INET, &meeting_port, sizeof meeting_port);
    close(open("here", O_CREAT | O_WRONLY, 0666));
    wait_for("seen");
    return shmctl(shmget(SEGMENT, 0, 0), IPC_RMID, NULL) == 0 ? 5 : 2;
}

static int is_seen(void) {
    char path[300], name[32];
    DIR *folder = opendir("/proc");
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        snprintf(path, sizeof path, "/proc/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        if (file && fgets(name, sizeof name, file) && !strcmp(name, "kw-meeting\n")) return 1;
        if (file) fclose(file);
    }
    return 0;
}

static int visit(void) {
    wait_for("here");
    int met = is_seen() || shmget(SEGMENT, 0, 0) >= 0 || access("/dev/shm/meeting", F_OK) == 0 || access("/tmp/meeting", F_OK) == 0;
    met |= connect(socket(AF_UNIX, SOCK_STREAM, 0), (const void *)&meeting, sizeof meeting) == 0;
    met |= connect(socket(AF_INET, SOCK_STREAM, 0), (const void *)&meeting_port, sizeof meeting_port) == 0;
    close(open("seen", O_CREAT | O_WRONLY, 0666));
    return met ? 0 : 1;
}

/* Memory that no process has and no file holds. */
static int segments(void) {
    for (;;) {
        int id = shmget(IPC_PRIVATE, 32 << 20, IPC_CREAT | 0600);
        char *at = id < 0 ? (char *)-1 : shmat(id, NULL, 0);
        if (at == (char *)-1) pause();
        memset(at, 1, 32 << 20);
        shmdt(at);
    }
}

static int many_names(void) { /* each an inode, none with a byte in it */
    char name[32];
    for (int i = 0;; i++) {
        snprintf(name, sizeof name, "/tmp/name%d", i);
        int fd = open(name, O_CREAT | O_WRONLY, 0666);
        if (fd < 0) pause();
        close(fd);
    }
}

static int full_buffers(void) {
    for (int pair[2];;) {
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) {
            if (fork() != 0) pause(); /* the next one has descriptors of its own again */
            for (int fd = 3; fd < 2000; fd++) close(fd);
            continue;
        }
        for (int i = 0; i < 2; i++) {
            fcntl(pair[i], F_SETFL, O_NONBLOCK);
            while (write(pair[i], block, 65536) > 0) continue;
        }
    }
}

static int crash(void) { return raise(SIGSEGV); }

static int kill_itself(void) { return raise(SIGKILL); }

static const struct {
    const char *name;
    int (*run)(void);
} attacks[] = {
    {"read", read_file}, {"write", write_file}, {"network", network}, {"fork_bomb", fork_bomb},
    {"children", a_hundred_children}, {"kill_parent", kill_parent}, {"trace_parent", trace_parent},
    {"trace_child", trace_child}, {"forge", forge}, {"call_home", call_home}, {"descriptors", descriptors}, {"links", plant_links},
    {"flood", flood}, {"loop", loop}, {"speak_and_loop", speak_and_loop}, {"outlive", outlive},
    {"outlive_and_wait", outlive_and_wait}, {"memory", memory}, {"memory_in_children", memory_in_children},
    {"shared_memory", shared_memory}, {"reserve", reserve}, {"fill_file", fill_file},
    {"fill_memory_file", fill_memory_file}, {"big_file", big_file}, {"many_files", many_files},
    {"nameless_files", nameless_files}, {"closed_folder", closed_folder}, {"remount", remount},
    {"new_user", new_user}, {"become_root", become_root}, {"kernel_doors", kernel_doors}, {"crash", crash},
    {"kill_itself", kill_itself}, {"other_abi", other_abi}, {"other_networks", other_networks},
    {"open_devices", open_devices}, {"make_devices", make_devices}, {"settings", settings},
    {"writable_mounts", writable_mounts}, {"shared_mounts", shared_mounts}, {"rights", rights}, {"am_root", am_root},
    {"set_user_id", set_user_id}, {"memory_program", memory_program}, {"set_clock", set_clock}, {"real_time", real_time},
    {"raise_limits", raise_limits}, {"fake_input", fake_input}, {"meet", meet}, {"visit", visit}, {"segments", segments},
    {"many_names", many_names}, {"full_buffers", full_buffers},
};

int main(int argc, char **argv) {
    argument = argc > 2 ? argv[2] : "";
    for (size_t i = 0; argc > 1 && i < sizeof attacks / sizeof *attacks; i++)
        if (strcmp(argv[1], attacks[i].name) == 0) return attacks[i].run();
    return 99;
}
