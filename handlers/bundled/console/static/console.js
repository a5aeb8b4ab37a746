// What the console's pages do on their own. They all work without it: times are local with it, the page of changes goes
// on by itself, the page of health is looked at every five seconds while somebody sees it, and a text that was not saved
// is not lost by a wrong click.
"use strict";

const mount = document.body.dataset.mount;

function make(name, text, attributes = {}) {
    const element = document.createElement(name);
    element.textContent = text;
    for (const [key, value] of Object.entries(attributes))
        element.setAttribute(key, value);
    return element;
}

// Times.
for (const time of document.querySelectorAll("time")) {
    time.title = time.textContent;
    time.textContent = new Date(time.dateTime).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
}

// Changes, as they happen.
function changeRow(change) {
    const row = make("tr", "", { class: "fresh" });
    const name = make("th", "", { scope: "row" });
    const key = make("bdi", change.key);
    row.append(make("td", change.seq, { class: "number" }), name, make("td", change.op === "delete" ? "deleted" : "written"));
    if (change.op === "delete") {
        name.append(key);
    } else {
        const link = make("a", "", { href: "doc?key=" + encodeURIComponent(change.key) });
        link.append(key);
        name.append(link);
    }
    return row;
}

function follow(live) {
    const body = document.querySelector("#changes tbody");
    const feed = new EventSource(mount + "/changes?since=" + live.dataset.since);
    let seen = 0;
    feed.onopen = () => {
        live.textContent = seen > 0 ? live.textContent : "What changes appears here by itself.";
    };
    feed.onmessage = (event) => {
        const change = JSON.parse(event.data);
        if (change.key === undefined)
            return;
        seen++;
        body.prepend(changeRow(change));
        while (body.rows.length > 200)
            body.lastElementChild.remove();
        live.textContent = `${seen} new since this page was opened; the last one: ${change.key}`;
    };
    feed.onerror = () => {
        live.textContent = feed.readyState === EventSource.CLOSED
            ? "New changes do not appear by themselves: that needs the right to read all documents."
            : "The server does not answer. Trying again …";
    };
}

// Health, while somebody looks.
const SAMPLES = 60, EVERY_MS = 5000;
const samples = [];

function plot(figure, points) {
    let svg = figure.querySelector("svg");
    if (svg === null) {
        svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
        svg.setAttribute("viewBox", "0 0 300 60");
        svg.setAttribute("preserveAspectRatio", "none");
        svg.setAttribute("class", "plot");
        svg.setAttribute("aria-hidden", "true");
        svg.append(document.createElementNS("http://www.w3.org/2000/svg", "polyline"));
        figure.append(svg);
    }
    const most = Math.max(...points, 1e-9);
    const first = SAMPLES - points.length;
    svg.firstChild.setAttribute("points", points.map((value, i) =>
        `${((first + i) * 300 / (SAMPLES - 1)).toFixed(1)},${(57 - 54 * value / most).toFixed(1)}`).join(" "));
    const last = points.at(-1);
    figure.querySelector("output").textContent = last >= 100 ? Math.round(last) : Number(last.toPrecision(3));
}

function draw() {
    for (const figure of document.querySelectorAll("[data-plot]")) {
        const name = figure.dataset.plot, unit = Number(figure.dataset.unit ?? 1);
        let points = samples.map((sample) => Number(sample[name] ?? 0) / unit);
        if (figure.dataset.rate)
            points = samples.slice(1).map((sample, i) =>
                Math.max(0, sample[name] - samples[i][name]) / Math.max(0.1, (sample.at - samples[i].at) / 1000));
        if (points.length > 0)
            plot(figure, points);
    }
}

async function sample() {
    const answer = await fetch("health?format=json", { headers: { Accept: "application/json" } });
    if (!answer.ok)
        return;
    const server = (await answer.json()).server[0];
    server.at = performance.now();
    samples.push(server);
    if (samples.length > SAMPLES)
        samples.shift();
    for (const now of document.querySelectorAll("[data-now]"))
        now.textContent = server[now.dataset.now];
    draw();
}

function watchHealth(history) {
    let timer = null;
    const look = async () => {
        timer = null;
        try {
            await sample();
        } catch {
            // The server is away: the next look may find it again.
        }
        if (document.visibilityState === "visible" && timer === null)
            timer = setTimeout(look, EVERY_MS);
    };
    history.hidden = false;
    document.addEventListener("visibilitychange", () => {
        clearTimeout(timer);
        timer = null;
        if (document.visibilityState === "visible")
            look();
    });
    look();
}

// A text that was not saved.
function guard(form) {
    let changed = form.querySelector("[aria-describedby=error]") !== null;
    form.addEventListener("input", () => { changed = true; });
    form.addEventListener("submit", () => { changed = false; });
    form.addEventListener("keydown", (event) => {
        if (event.key === "s" && (event.ctrlKey || event.metaKey)) {
            event.preventDefault();
            form.requestSubmit();
        }
    });
    addEventListener("beforeunload", (event) => {
        if (changed)
            event.preventDefault();
    });
}

const live = document.getElementById("live");
const history_ = document.getElementById("history");
const form = document.querySelector("form[data-guard]");
const made = document.getElementById("made");
if (live !== null)
    follow(live);
if (history_ !== null)
    watchHealth(history_);
if (form !== null)
    guard(form);
if (made !== null)
    made.addEventListener("focus", () => made.select());
