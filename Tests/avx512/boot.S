/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a Multiboot loader (Multiboot Specification 0.6.96 §3) to main() in 64-bit mode with AVX-512
 * switched on, as an operating system does it: Intel SDM volume 3, 10.8.5 (IA-32e mode) and volume
 * 1, 13.3 (XCR0). The first GiB is mapped one to one.
 */
#define MAGIC 0x1badb002
#define FLAGS 0x00010000 /* the addresses are in this header */

    .section .boot, "ax"
    .code32
    .align 4
header:
    .long MAGIC, FLAGS, -(MAGIC + FLAGS)
    .long header, header, image_end, memory_end, start

    .globl start
start:
    cli
    cld
    mov $stack_end, %esp

    mov $directory + 3, %eax /* present, writable */
    mov %eax, directories
    mov $pages + 3, %eax
    mov %eax, directory
    mov $pages, %edi
    mov $0x83, %eax /* 2 MiB pages */
1:  mov %eax, (%edi)
    add $8, %edi
    add $0x200000, %eax
    cmp $0x40000083, %eax
    jne 1b

    mov $0x00040620, %eax /* CR4: PAE, OSFXSR, OSXMMEXCPT, OSXSAVE */
    mov %eax, %cr4
    mov $directories, %eax
    mov %eax, %cr3
    mov $0xc0000080, %ecx /* IA32_EFER.LME */
    rdmsr
    or $0x100, %eax
    wrmsr
    mov $0x80000013, %eax /* CR0: PG, ET, MP, PE */
    mov %eax, %cr0
    lgdt table_pointer
    ljmp $8, $wide

    .code64
wide:
    xor %eax, %eax
    mov %eax, %ss
    mov %eax, %ds
    mov %eax, %es
    mov $0xd, %eax /* what XCR0 may have */
    xor %ecx, %ecx
    cpuid
    and $0xe7, %eax /* x87, SSE, AVX, opmask, ZMM_Hi256, Hi16_ZMM */
    xor %ecx, %ecx
    xor %edx, %edx
    xsetbv
    call __cpu_indicator_init /* of libgcc: what __builtin_cpu_supports() looks at */
    call main
    mov %eax, %edi
    call exit

    .align 8
table:
    .quad 0, 0x00209a0000000000 /* 64-bit code */
table_pointer:
    .word . - table - 1
    .long table

    .bss
    .align 4096
directories:
    .skip 4096
directory:
    .skip 4096
pages:
    .skip 4096
stack:
    .skip 65536
stack_end:
