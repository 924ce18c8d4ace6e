/* Trampolines into the real libibverbs: see verbs_real.h.
 *
 * Each is an indirect jump through its slot. A slot first leads to a piece of code
 * behind the trampoline that hands the index to tramp_lazy, which saves whatever may
 * hold an argument (the functions are unknown here, some are variadic), asks
 * verbs_real_resolve for the target and jumps there as if nothing had happened:
 * arguments on the stack stay where the caller put them.
 */
#if defined(WEFT_VERBS_TRAMP_C)
/* verbs_tramp.c */
#elif defined(__x86_64__)

#if defined(__CET__)
#define LANDING_PAD endbr64
#else
#define LANDING_PAD
#endif

.macro TRAMP_BODY index
	LANDING_PAD
	jmpq	*(verbs_real_slot + 8 * \index)(%rip)
.Llazy\index:
	LANDING_PAD
	pushq	$\index
	.cfi_adjust_cfa_offset 8
	jmp	tramp_lazy
	.cfi_adjust_cfa_offset -8
.endm

#define SLOT .quad

	.text
	.type	tramp_lazy, %function
tramp_lazy:
	.cfi_startproc
	.cfi_def_cfa_offset 16
	/* Here the stack is aligned: return address, index. */
	subq	$192, %rsp
	.cfi_adjust_cfa_offset 192
	movq	%rdi, 0(%rsp)
	movq	%rsi, 8(%rsp)
	movq	%rdx, 16(%rsp)
	movq	%rcx, 24(%rsp)
	movq	%r8, 32(%rsp)
	movq	%r9, 40(%rsp)
	movq	%rax, 48(%rsp)	/* variadic: number of vector registers */
	movq	%r10, 56(%rsp)
	movaps	%xmm0, 64(%rsp)
	movaps	%xmm1, 80(%rsp)
	movaps	%xmm2, 96(%rsp)
	movaps	%xmm3, 112(%rsp)
	movaps	%xmm4, 128(%rsp)
	movaps	%xmm5, 144(%rsp)
	movaps	%xmm6, 160(%rsp)
	movaps	%xmm7, 176(%rsp)
	movl	192(%rsp), %edi
	call	verbs_real_resolve
	movq	%rax, %r11
	movaps	176(%rsp), %xmm7
	movaps	160(%rsp), %xmm6
	movaps	144(%rsp), %xmm5
	movaps	128(%rsp), %xmm4
	movaps	112(%rsp), %xmm3
	movaps	96(%rsp), %xmm2
	movaps	80(%rsp), %xmm1
	movaps	64(%rsp), %xmm0
	movq	56(%rsp), %r10
	movq	48(%rsp), %rax
	movq	40(%rsp), %r9
	movq	32(%rsp), %r8
	movq	24(%rsp), %rcx
	movq	16(%rsp), %rdx
	movq	8(%rsp), %rsi
	movq	0(%rsp), %rdi
	addq	$200, %rsp
	.cfi_adjust_cfa_offset -200
	jmpq	*%r11
	.cfi_endproc
	.size	tramp_lazy, . - tramp_lazy

#elif defined(__aarch64__)

/* "bti c", spelled so that old assemblers take it: a no-op where branch targets are not
 * checked. A landing pad for calls is also one for jumps through x16, as these are. */
#define LANDING_PAD hint #34

.macro TRAMP_BODY index
	LANDING_PAD
	adrp	x16, verbs_real_slot + 8 * \index
	ldr	x16, [x16, :lo12:verbs_real_slot + 8 * \index]
	br	x16
.Llazy\index:
	LANDING_PAD
	mov	w17, #\index
	b	tramp_lazy
.endm

#define SLOT .xword

	.text
	.type	tramp_lazy, %function
tramp_lazy:
	.cfi_startproc
	stp	x29, x30, [sp, #-224]!
	.cfi_adjust_cfa_offset 224
	.cfi_rel_offset x29, 0
	.cfi_rel_offset x30, 8
	mov	x29, sp
	stp	x0, x1, [sp, #16]
	stp	x2, x3, [sp, #32]
	stp	x4, x5, [sp, #48]
	stp	x6, x7, [sp, #64]
	str	x8, [sp, #80]	/* where a large result goes */
	stp	q0, q1, [sp, #96]
	stp	q2, q3, [sp, #128]
	stp	q4, q5, [sp, #160]
	stp	q6, q7, [sp, #192]
	mov	w0, w17
	bl	verbs_real_resolve
	mov	x16, x0
	ldp	q6, q7, [sp, #192]
	ldp	q4, q5, [sp, #160]
	ldp	q2, q3, [sp, #128]
	ldp	q0, q1, [sp, #96]
	ldr	x8, [sp, #80]
	ldp	x6, x7, [sp, #64]
	ldp	x4, x5, [sp, #48]
	ldp	x2, x3, [sp, #32]
	ldp	x0, x1, [sp, #16]
	ldp	x29, x30, [sp], #224
	.cfi_adjust_cfa_offset -224
	.cfi_restore x29
	.cfi_restore x30
	br	x16
	.cfi_endproc
	.size	tramp_lazy, . - tramp_lazy

#endif

#if defined(SLOT)

.macro TRAMP index, symbol
	.text
	.balign	16
	.type	\symbol, %function
\symbol:
	.cfi_startproc
	TRAMP_BODY \index
	.cfi_endproc
	.size	\symbol, . - \symbol
	/* The list is in order of the indices, so the slots are. */
	.section .data.rel.local, "aw", %progbits
	SLOT	.Llazy\index
.endm

.macro TRAMP_FORWARD index, name
	.globl	\name
	TRAMP	\index, \name
.endm

.macro TRAMP_COMPAT index, name, version
	.globl	verbs_compat_\index
	.symver	verbs_compat_\index, \name@\version
	TRAMP	\index, verbs_compat_\index
.endm

.macro TRAMP_REAL index, name
	.globl	verbs_real_\name
	.hidden	verbs_real_\name
	TRAMP	\index, verbs_real_\name
.endm

	.section .data.rel.local, "aw", %progbits
	.balign	8
	.globl	verbs_real_slot
	.hidden	verbs_real_slot
verbs_real_slot:

#define VERBS_FORWARD(i, n, v, kind) TRAMP_FORWARD i, n
#define VERBS_COMPAT(i, n, v, kind)  TRAMP_COMPAT i, n, v
#define VERBS_REAL(i, n, v, kind)    TRAMP_REAL i, n
#define VERBS_ABSENT(i, n, v, kind)  TRAMP_REAL i, n
#define VERBS_OBJECT(n, v, size)
#include "verbs_real.def"

#endif

	.section .note.GNU-stack, "", %progbits
